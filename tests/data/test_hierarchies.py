"""Table ↔ hierarchy: columns come back, chains are the longest, and what does not fit is named."""

from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.data.hierarchies import chains_of, hierarchy_of, with_hierarchy
from kinfold.data.read import read_table
from kinfold.errors import ConfigError, DataError


def table_of(label, **levels):
    return read_table(
        {
            "path": [f"{row}.jpg" for row in range(len(label))],
            "label": label,
            **{f"label.{level}": groups for level, groups in levels.items()},
        }
    )


BIRDS = table_of(["wren", "owl", "wren", "gull"], order=["song", "night", "song", "shore"], family=["w", "o", "w", "g"])
CARS = table_of(
    [1, 2, 3, 4],
    country=["DE", "DE", "ES", "DE"],
    body=["SUV", "van", "van", "van"],
    make=["Audi", "Audi", "Seat", "VW"],
)


@st.composite
def groupings(draw) -> dict[str, list[int]]:
    n = draw(st.integers(1, 6))
    return {name: draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)) for name in "abcd"[: draw(st.integers(1, 4))]}


class TestHierarchyOf:
    def test_classes_are_the_tables_in_its_order(self):
        tree = hierarchy_of(BIRDS)
        assert tree.classes == BIRDS.classes == ("gull", "owl", "wren")
        assert tree.columns() == {"order": ("shore", "night", "song"), "family": ("g", "o", "w")}

    def test_each_rows_group_is_that_of_its_class(self):
        tree = hierarchy_of(BIRDS)
        for level, column in BIRDS.levels.items():
            assert tuple(tree.groups_of(level)[code] for code in BIRDS.class_index) == column

    @pytest.mark.parametrize(
        ("levels", "names"), [("order", ("order",)), (["order"], ("order",)), (["family", "order"], ("family", "order"))]
    )
    def test_levels_can_be_named(self, levels, names):
        assert hierarchy_of(BIRDS, levels).names == names

    def test_levels_that_cross_are_refused_with_the_chains_one_can_name(self):
        with pytest.raises(ConfigError, match=r"`country` and `body` cross.*: levels=\('make', 'country'\) or levels='body'\."):
            hierarchy_of(CARS)
        with pytest.raises(ConfigError, match=r"`body` and `make` cross.*: levels='make' or levels='body'\."):
            hierarchy_of(CARS, ["body", "make"])
        assert hierarchy_of(CARS, ["country", "make"]).names == ("make", "country")

    def test_unknown_doubled_and_no_levels_are_refused(self):
        with pytest.raises(ConfigError, match="did you mean `family`"):
            hierarchy_of(BIRDS, "famly")
        with pytest.raises(ConfigError, match="each once"):
            hierarchy_of(BIRDS, ["order", "order"])
        with pytest.raises(ConfigError, match="at least one level"):
            hierarchy_of(BIRDS, [])
        with pytest.raises(ConfigError, match="no coarser level"):
            hierarchy_of(table_of([1, 2]))

    def test_a_class_in_two_groups_is_refused_with_both(self):
        torn = replace(BIRDS, levels={"order": ("song", "night", "shore", "shore")})
        with pytest.raises(DataError, match="class 'wren' belongs to two groups of level `order`: 'song' and 'shore'"):
            hierarchy_of(torn)


class TestChains:
    def test_levels_that_nest_are_one_chain(self):
        assert chains_of(BIRDS) == (("order", "family"),)
        assert chains_of(table_of([1, 2])) == ()

    def test_crossing_levels_part_the_chains(self):
        assert chains_of(CARS) == (("make", "country"), ("body",))

    def test_a_level_above_two_crossing_ones_ends_both_chains(self):
        table = table_of([1, 2, 3, 4], a=[0, 0, 1, 2], b=[0, 1, 1, 2], top=[0, 0, 0, 1])
        assert chains_of(table) == (("a", "top"), ("b", "top"))

    @given(groupings())
    @settings(deadline=None)
    def test_chains_are_all_sets_of_levels_that_nest_pairwise_and_take_no_further_level(self, columns):
        table = table_of(list(range(len(columns["a"]))), **columns)
        nested = {pair for pair in combinations(columns, 2) if table.nests(*pair) or table.nests(*pair[::-1])}
        sets = [
            set(some)
            for n in range(1, len(columns) + 1)
            for some in combinations(columns, n)
            if set(combinations(some, 2)) <= nested
        ]
        longest = [some for some in sets if not any(some < other for other in sets)]
        found = chains_of(table)
        assert sorted(map(sorted, found)) == sorted(map(sorted, longest))
        assert all(table.nests(fine, coarse) for chain in found for fine, coarse in pairwise(chain))


class TestWithHierarchy:
    def test_the_levels_become_columns_and_come_back(self):
        tree = hierarchy_from_groups(["kiwi", "wren", "gull", "owl"], {"size": ["big", "small", "big", "small"]})
        table = with_hierarchy(BIRDS, tree)
        assert table.levels == {**BIRDS.levels, "size": ("small", "small", "small", "big")}
        assert hierarchy_of(table, "size") == tree.restricted(BIRDS.classes)
        assert "levels of a hierarchy: `size`" in table.summary()
        assert set(BIRDS.levels) == {"order", "family"}

    def test_a_level_of_the_same_name_is_replaced(self):
        tree = hierarchy_from_groups(["wren", "gull", "owl"], {"order": ["a", "b", "b"]})
        assert with_hierarchy(BIRDS, tree).levels["order"] == ("a", "b", "a", "b")

    def test_missing_classes_are_listed(self):
        with pytest.raises(DataError, match="2 of 3 classes are not in the hierarchy: 'gull', 'owl'"):
            with_hierarchy(BIRDS, hierarchy_from_groups(["wren"], {"order": ["song"]}))

    @pytest.mark.parametrize(("label", "classes"), [(["12", "7"], [7, 12]), ([12, 7], ["7", "12"]), ([12, 7], [7, 12, "other"])])
    def test_a_number_matches_the_same_number_as_text(self, label, classes):
        tree = hierarchy_from_groups(classes, {"kind": [f"kind of {name}" for name in classes]})
        assert with_hierarchy(table_of(label), tree).levels["kind"] == ("kind of 12", "kind of 7")

    def test_a_number_and_the_same_number_as_text_are_never_mixed_up(self):
        both = hierarchy_from_groups([7, "7"], {"kind": ["number", "text"]})
        assert with_hierarchy(table_of(["7", 7]), both).levels["kind"] == ("text", "number")
        assert with_hierarchy(table_of([7]), both).levels["kind"] == ("number",)
        with pytest.raises(DataError, match="1 of 2 classes are not in the hierarchy: '7'"):
            with_hierarchy(table_of(["7", 7]), hierarchy_from_groups([7], {"kind": ["number"]}))


@pytest.mark.shared_data
class TestPhotographs:
    def test_cars_have_two_crossing_levels(self, photographs):
        table = read_table(photographs / "cars196_train")
        assert {chain[0] for chain in chains_of(table)} == set(table.levels)

    def test_the_levels_of_the_other_sets_come_back(self, photographs):
        for name in ("cub200", "grocery", "omniglot_small"):
            table = read_table(photographs / name)
            for chain in chains_of(table):
                again = with_hierarchy(replace(table, levels={}), hierarchy_of(table, chain))
                assert again.levels == {level: table.levels[level] for level in chain}
