"""Groups that are numbers become a readable hierarchy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.core.numbered_groups import hierarchy_from_codes
from kinfold.errors import DataError


@given(st.data())
def test_classes_share_a_group_where_they_share_a_number(data):
    n = data.draw(st.integers(1, 12))
    fine = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    above = data.draw(st.lists(st.integers(0, 3), min_size=10, max_size=10))
    coarse = [above[number] for number in fine]
    tree = hierarchy_from_codes([f"c{i}" for i in range(n)], [fine, coarse])
    assert tree.names == ("level_1", "level_2")
    for name, code in (("level_1", fine), ("level_2", coarse)):
        groups = tree.groups_of(name)
        assert len(tree.levels[tree.place_of(name)].groups) == len(set(code))
        for i in range(n):
            assert groups[i].startswith(f"{code[i]} (")
            assert all((groups[i] == groups[j]) == (code[i] == code[j]) for j in range(n))


def test_a_group_names_its_number_and_its_first_two_classes():
    tree = hierarchy_from_codes(["oak", "elm", "ash", 7, "x" * 40], [[4, 4, 4, 0, 9]])
    assert tree.levels[0].groups == ("4 (oak, elm, +1)", "0 (7)", f"9 ({'x' * 23}…)")


def test_levels_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="level_2 groups 1 classes, but there are 2"):
        hierarchy_from_codes(["a", "b"], [[0, 1], [0]])
    with pytest.raises(DataError, match="cross"):
        hierarchy_from_codes(["a", "b", "c"], [[0, 0, 1], [0, 1, 1]])
