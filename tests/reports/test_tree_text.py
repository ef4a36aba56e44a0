"""Text trees: every class under its groups, counts that add up, nothing lost when shortened."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.errors import ConfigError, DataError
from kinfold.reports.tree_text import tree_lines

BIRDS = hierarchy_from_groups(
    ["wren", "owl", "gull", "tit"],
    {"family": ["small", "night", "sea", "small"], "order": ["song", "hunt", "hunt", "song"]},
)


def test_a_tree_reads_from_coarse_to_fine_with_counts():
    assert tree_lines(BIRDS, counts={"wren": 3, "owl": 1, "gull": 1200, "tit": 0}) == [
        "4 classes, 1,204 images (order → family → class)",
        "├── song: 2 classes, 3 images",
        "│   └── small: 2 classes, 3 images",
        "│       ├── wren: 3 images",
        "│       └── tit: 0 images",
        "└── hunt: 2 classes, 1,201 images",
        "    ├── night: 1 class, 1 image",
        "    │   └── owl: 1 image",
        "    └── sea: 1 class, 1,200 images",
        "        └── gull: 1,200 images",
    ]


def test_long_groups_are_shortened_and_say_by_how_much():
    many = hierarchy_from_groups([f"c{i}" for i in range(11)], {"kind": ["a"] * 10 + ["b"]})
    lines = tree_lines(many, max_members=8)
    assert lines[9:12] == ["│   ├── c7", "│   └── … 2 more classes", "└── b: 1 class"]
    assert tree_lines(many, max_members=0)[1:] == ["├── a: 10 classes", "└── b: 1 class"]


def test_groups_named_by_numbers_are_called_by_their_level():
    assert tree_lines(hierarchy_from_groups(["a\nb", 7], {"level 1": [3, 0]})) == [
        "2 classes (level 1 → class)",
        "├── level 1 3: 1 class",
        "│   └── a b",
        "└── level 1 0: 1 class",
        "    └── 7",
    ]


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(DataError, match="2 of 4 classes have no count: 'gull', 'tit'"):
        tree_lines(BIRDS, counts={"wren": 3, "owl": 1})
    with pytest.raises(ConfigError, match="max_members = -1"):
        tree_lines(BIRDS, max_members=-1)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=30), st.integers(1, 5))
def test_each_class_hangs_below_its_own_groups_and_counts_add_up(rows, max_members):
    classes = [f"class-{i}" for i in range(len(rows))]
    fine = [f"fine-{group}" for group, _ in rows]
    coarse = [f"coarse-{group % 2}" for group, _ in rows]
    tree = hierarchy_from_groups(classes, {"fine": fine, "coarse": coarse})
    path, found, sizes = [""] * 3, {}, {}
    for line in tree_lines(tree, counts={name: n for name, (_, n) in zip(classes, rows, strict=True)}, max_members=max_members)[
        1:
    ]:
        place = next(i for i, letter in enumerate(line) if letter not in "│├└─ ")
        name, _, rest = line[place:].partition(": ")
        path[place // 4 - 1] = name
        if name.startswith("class-"):
            found[name] = path[:2]
        elif not name.startswith("…"):
            sizes[name] = [int(n) for n in re.findall(r"\d+", rest)]
    for name, above in found.items():
        row = classes.index(name)
        assert set(above) == {fine[row], coarse[row]}
    for group, (n_classes, n_images) in sizes.items():
        members = [i for i in range(len(rows)) if group in (fine[i], coarse[i])]
        assert n_classes == len(members)
        assert n_images == sum(rows[i][1] for i in members)
    shown = {group: min(fine.count(group), max_members) for group in set(fine)}
    assert len(found) == sum(shown.values())
