"""Hierarchies: what is refused, and codes, members and heights against plain loops."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.core.hierarchy import Hierarchy, Level, hierarchy_from_groups
from kinfold.errors import ConfigError, DataError

BIRDS = hierarchy_from_groups(
    ["wren", "robin", "owl", "gull", "tern"],
    {"order": ["song", "song", "night", "shore", "shore"], "family": ["wrens", "robins", "owls", "gulls", "gulls"]},
)


@st.composite
def nested_columns(draw) -> tuple[list[int], dict[str, list[int]]]:
    """Draw classes and up to three nested levels: each group of a level is dealt to a group of the next."""
    n = draw(st.integers(1, 12))
    column, columns = list(range(n)), {}
    for level in range(draw(st.integers(1, 3))):
        column_of = {group: draw(st.integers(0, 4)) for group in dict.fromkeys(column)}
        column = [column_of[group] for group in column]
        columns[f"level {level}"] = column
    names = draw(st.permutations(list(columns)))
    return list(range(100, 100 + n)), {name: columns[name] for name in names}


class TestFromGroups:
    def test_levels_are_sorted_from_fine_to_coarse(self):
        assert BIRDS.names == ("family", "order")
        assert BIRDS.sizes == (4, 3)
        assert repr(BIRDS) == "Hierarchy(5 classes; family 4, order 3)"

    def test_equal_levels_keep_their_order(self):
        tree = hierarchy_from_groups([1, 2], {"b": [0, 0], "a": [7, 7]})
        assert tree.names == ("b", "a")

    @given(nested_columns())
    def test_columns_come_back(self, drawn):
        classes, columns = drawn
        tree = hierarchy_from_groups(classes, columns)
        assert {name: list(column) for name, column in tree.columns().items()} == columns
        assert hierarchy_from_groups(classes, tree.columns()) == tree
        for place, name in enumerate(tree.names):
            groups = tree.levels[place].groups
            assert [groups[code] for code in tree.codes[place].tolist()] == columns[name]

    @given(nested_columns())
    def test_members_are_the_classes_of_each_group(self, drawn):
        classes, columns = drawn
        tree = hierarchy_from_groups(classes, columns)
        for name, column in columns.items():
            expected = {}
            for label, group in zip(classes, column, strict=True):
                expected.setdefault(group, []).append(label)
            assert {group: list(found) for group, found in tree.members(name).items()} == expected

    def test_crossing_levels_are_refused_with_the_group_that_is_torn(self):
        with pytest.raises(
            DataError,
            match="levels `make` and `body` cross: 'Audi' lies in both 'SUV' and 'van'. Groupings that cross are separate",
        ):
            hierarchy_from_groups([1, 2, 3, 4], {"body": ["SUV", "van", "van", "van"], "make": ["Audi", "Audi", "Seat", "VW"]})

    def test_a_column_of_another_length_is_refused(self):
        with pytest.raises(DataError, match="level `kind` names 1 groups for 2 classes"):
            hierarchy_from_groups(["oak", "elm"], {"kind": ["tree"]})


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("classes", "levels", "message"),
        [
            ((), (Level("kind", (), ()),), "0 classes"),
            ((1, 2), (), "0 levels"),
            ((1, 1), (Level("kind", ("a",), (0, 0)),), "the classes of a hierarchy must be distinct: 1 comes twice"),
            ((1, 2), (Level("kind", ("a", "a"), (0, 1)),), "'a' comes twice"),
            ((1, 2), (Level("label", ("a",), (0, 0)),), "'label' comes twice"),
            ((1, 2), (Level(" ", ("a",), (0, 0)),), "each needs a name"),
            ((1, 2), (Level("kind", ("a",), (0,)),), "1 parents for 2 groups of `label`"),
            ((1, 2), (Level("kind", ("a", "b"), (0, 0)),), "each group used"),
            ((1, 2), (Level("kind", ("a",), (0, 1)),), "count from 0 to 0"),
        ],
    )
    def test_what_is_no_hierarchy_is_refused(self, classes, levels, message):
        with pytest.raises(DataError, match=message):
            Hierarchy(classes, levels)

    def test_an_unknown_level_is_refused_with_the_nearest(self):
        with pytest.raises(ConfigError, match="did you mean `family`"):
            BIRDS.members("famly")


class TestRestricted:
    def test_classes_come_in_the_order_given_and_empty_groups_go(self):
        few = BIRDS.restricted(["tern", "wren", "gull"])
        assert few.columns() == {"family": ("gulls", "wrens", "gulls"), "order": ("shore", "song", "shore")}
        assert few.sizes == (2, 2)

    def test_missing_classes_are_listed_and_counted(self):
        with pytest.raises(DataError, match=r"6 of 7 classes are not in the hierarchy: 'a', 'b', 'c', 'd', 'e', …\."):
            BIRDS.restricted([*"abcdef", "wren"])


class TestHeight:
    @given(nested_columns())
    def test_the_height_counts_the_levels_that_tell_two_classes_apart(self, drawn):
        classes, columns = drawn
        tree = hierarchy_from_groups(classes, columns)
        pairs = [(i, j) for i in range(len(classes)) for j in range(len(classes))]
        a, b = torch.tensor(pairs).T
        expected = [(i != j) + sum(column[i] != column[j] for column in columns.values()) for i, j in pairs]
        assert tree.lca_height(a, b).tolist() == expected

    def test_heights_of_a_tree_one_can_draw(self):
        wren = torch.zeros(5, dtype=torch.long)
        assert BIRDS.lca_height(wren, torch.arange(5)).tolist() == [0, 2, 3, 3, 3]
        assert BIRDS.lca_height(torch.tensor([3]), torch.tensor([4])).tolist() == [1]

    @given(nested_columns())
    def test_of_three_classes_the_two_greatest_heights_are_equal(self, drawn):
        classes, columns = drawn
        tree = hierarchy_from_groups(classes, columns)
        n = len(classes)
        every = torch.arange(n)
        height = tree.lca_height(every.repeat_interleave(n), every.repeat(n)).reshape(n, n)
        assert torch.equal(height, height.T)
        assert (height[:, :, None] <= torch.maximum(height[:, None, :], height.T[None, :, :])).all()
