"""Taxonomies → hierarchies: random trees against walks up the tree, and one message for each way to be no tree."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.core.taxonomy import hierarchy_from_parents, hierarchy_from_paths
from kinfold.errors import DataError

ANIMALS = {"wren": "song", "robin": "song", "owl": "bird", "song": "bird", "cod": "fish", "bird": "animal", "fish": "animal"}


@st.composite
def trees(draw) -> dict[str, str | None]:
    """Draw a forest: each node's parent is an earlier node, or none."""
    n = draw(st.integers(2, 16))
    parent = {"n0": None}
    for node in range(1, n):
        above = draw(st.integers(-1 if draw(st.integers(0, 5)) == 0 else 0, node - 1))
        parent[f"n{node}"] = None if above < 0 else f"n{above}"
    order = draw(st.permutations(list(parent)))
    return {node: parent[node] for node in order}


def line_of(node: str, parent: dict) -> list[str]:
    """Return a node and everything above it, the root first."""
    line = [node]
    while parent.get(line[0]) is not None:
        line.insert(0, parent[line[0]])
    return line


def leaves_of(parent: dict) -> list[str]:
    return [node for node in parent if node not in parent.values()]


def cut(parent: dict, classes: list[str], depth: int) -> list[str]:
    lines = [line_of(node, parent) for node in classes]
    return [line[min(depth, len(line) - 1)] for line in lines]


def cuts_worth_keeping(parent: dict, classes: list[str]) -> dict[str, list[str]]:
    """Return the partitions, from the deepest up, that group something and that no deeper cut gives."""
    found, seen = {}, [list(range(len(classes)))]
    for depth in range(20, -1, -1):
        column = cut(parent, classes, depth)
        codes = [column.index(group) for group in column]
        if codes not in seen and len(set(codes)) > 1:
            found[f"depth_{depth}"] = column
            seen.append(codes)
    return found


class TestParents:
    def test_levels_are_the_ancestors_so_many_steps_below_the_root(self):
        tree = hierarchy_from_parents(ANIMALS)
        assert tree.classes == ("wren", "robin", "owl", "cod")
        assert tree.columns() == {"depth_2": ("song", "song", "owl", "cod"), "depth_1": ("bird", "bird", "bird", "fish")}

    @given(trees())
    def test_a_random_forest_is_cut_at_every_depth_that_groups_anew(self, parent):
        leaves = leaves_of(parent)
        expected = cuts_worth_keeping(parent, leaves)
        if not expected:
            with pytest.raises(DataError, match="has no level"):
                hierarchy_from_parents(parent, classes=leaves)
            return
        tree = hierarchy_from_parents(parent, classes=leaves)
        assert tree.classes == tuple(leaves)
        assert {name: list(column) for name, column in tree.columns().items()} == expected

    @given(trees())
    def test_heights_count_the_kept_levels_below_the_lowest_common_ancestor(self, parent):
        leaves = leaves_of(parent)
        if not cuts_worth_keeping(parent, leaves):
            return
        tree = hierarchy_from_parents(parent, classes=leaves)
        depths = [int(name.removeprefix("depth_")) for name in tree.names]
        for i, one in enumerate(leaves):
            for j, other in enumerate(leaves):
                lines = line_of(one, parent), line_of(other, parent)
                shared = [a for a, b in zip(*lines, strict=False) if a == b]
                expected = (i != j) + sum(depth >= len(shared) for depth in depths if i != j)
                assert tree.lca_height(torch.tensor([i]), torch.tensor([j])).tolist() == [expected]

    @given(trees())
    def test_paths_columns_and_parents_give_one_hierarchy(self, parent):
        leaves = leaves_of(parent)
        if not cuts_worth_keeping(parent, leaves):
            return
        tree = hierarchy_from_parents(parent, classes=leaves)
        assert hierarchy_from_paths({leaf: line_of(leaf, parent)[:-1] for leaf in leaves}) == tree
        assert hierarchy_from_groups(leaves, tree.columns()) == tree

    @given(trees(), st.data())
    def test_a_part_of_the_classes_has_the_levels_of_all_or_fewer(self, parent, data):
        leaves = leaves_of(parent)
        part = data.draw(st.lists(st.sampled_from(leaves), min_size=1, unique=True))
        expected = cuts_worth_keeping(parent, part)
        if expected:
            found = hierarchy_from_parents(parent, classes=part)
            assert {name: list(column) for name, column in found.columns().items()} == expected

    @pytest.mark.parametrize("blank", [None, "", " "])
    def test_a_root_may_be_written_without_a_parent(self, blank):
        assert hierarchy_from_parents({**ANIMALS, "animal": blank}) == hierarchy_from_parents(ANIMALS)

    def test_several_roots_are_a_level_of_their_own(self):
        tree = hierarchy_from_parents({"wren": "bird", "owl": "bird", "oak": "tree", "elm": "tree"})
        assert tree.columns() == {"depth_0": ("bird", "bird", "tree", "tree")}

    def test_inner_nodes_can_be_classes(self):
        tree = hierarchy_from_parents(ANIMALS, classes=["cod", "song", "owl"])
        assert tree.columns() == {"depth_1": ("fish", "bird", "bird")}

    def test_whole_numbers_are_names_too(self):
        tree = hierarchy_from_parents({1: 10, 2: 10, 3: 11, 10: 0, 11: 0})
        assert tree.members("depth_1") == {10: (1, 2), 11: (3,)}

    def test_a_very_deep_tree_is_read(self):
        parent = {i: i - 1 for i in range(1, 3000)} | {"a": 2999, "b": 2999, "c": 1}
        assert hierarchy_from_parents(parent).columns() == {"depth_2999": (2999, 2999, "c")}

    def test_a_class_above_another_is_refused_with_both_names(self):
        with pytest.raises(DataError, match="class 'bird' lies above class 'wren'"):
            hierarchy_from_parents(ANIMALS, classes=["wren", "cod", "bird"])
        with pytest.raises(DataError, match="class 'animal' lies above class 'fish'"):
            hierarchy_from_parents(ANIMALS, classes=["fish", "animal"])

    @pytest.mark.parametrize(
        ("extra", "circle"),
        [
            ({"animal": "song"}, "'song' → 'bird' → 'animal' → 'song'"),
            ({"animal": "animal"}, "'animal' → 'animal'"),
            ({"x": "y", "y": "x"}, "'x' → 'y' → 'x'"),
        ],
    )
    def test_a_circle_is_refused_and_named(self, extra, circle):
        with pytest.raises(DataError, match=f"in a circle: {circle}"):
            hierarchy_from_parents({**ANIMALS, **extra})

    def test_unknown_and_doubled_classes_are_refused(self):
        with pytest.raises(DataError, match="1 of 2 classes are no node of the taxonomy: 'pike'"):
            hierarchy_from_parents(ANIMALS, classes=["wren", "pike"])
        with pytest.raises(DataError, match="class 'wren' comes twice"):
            hierarchy_from_parents(ANIMALS, classes=["wren", "owl", "wren"])

    def test_a_taxonomy_that_groups_nothing_is_refused(self):
        with pytest.raises(DataError, match="2 classes has no level"):
            hierarchy_from_parents({"wren": "bird", "owl": "bird"})
        with pytest.raises(DataError, match="has no class"):
            hierarchy_from_parents({})


class TestPaths:
    def test_one_name_below_two_parents_means_two_groups(self):
        tree = hierarchy_from_paths(
            {"ant": ("animals", "other"), "cod": ("animals", "fish"), "eel": ("animals", "fish"), "fern": ("plants", "other"),
             "moss": ("plants", "other")},
        )  # fmt: skip
        assert tree.columns() == {
            "depth_1": ("animals/other", "fish", "fish", "plants/other", "plants/other"),
            "depth_0": ("animals", "animals", "animals", "plants", "plants"),
        }

    def test_a_class_may_be_called_as_its_group(self):
        tree = hierarchy_from_paths({"wren": ("bird", "wren"), "robin": ("bird", "wren"), "bird": ("bird", "owl")})
        assert tree.columns() == {"depth_1": ("wren", "wren", "owl")}

    def test_a_class_that_ends_early_goes_on_as_itself(self):
        tree = hierarchy_from_paths({"wren": ("bird", "song"), "robin": ("bird", "song"), "owl": ("bird",), "fire": ()})
        assert tree.columns() == {"depth_1": ("song", "song", "owl", "fire"), "depth_0": ("bird", "bird", "bird", "fire")}

    def test_some_of_the_classes_can_be_named(self):
        paths = {"wren": ("a", "b"), "owl": ("a", "b"), "cod": ("a", "c")}
        assert hierarchy_from_paths(paths, classes=["cod", "wren", "owl"]).columns() == {"depth_1": ("c", "b", "b")}

    @pytest.mark.parametrize(
        ("paths", "message"),
        [
            ({"wren": "a/b"}, "is the text 'a/b'"),
            ({"wren": ("a", " ")}, "has a blank name"),
            ({"wren": ("a", "bird"), "bird": ("a",)}, "class 'bird' lies above class 'wren'"),
            ({}, "has no class"),
        ],
    )
    def test_what_is_no_path_is_refused(self, paths, message):
        with pytest.raises(DataError, match=message):
            hierarchy_from_paths(paths)
        with pytest.raises(DataError, match="no class with a path: 'x'"):
            hierarchy_from_paths(paths, classes=["x"])
