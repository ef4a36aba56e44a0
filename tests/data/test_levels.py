from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.data.levels import dense_codes, nests, one_chain, sorted_names

NAMES = st.one_of(st.integers(-(10**30), 10**30), st.text(max_size=3))


@settings(deadline=None)
@given(st.lists(NAMES, max_size=12))
def test_codes_point_back_to_the_sorted_names(values):
    names, codes = sorted_names(values), dense_codes(values)
    assert [names[code] for code in codes] == values
    assert set(codes.tolist()) == set(range(len(names)))


def test_whole_numbers_sort_by_value_and_before_text():
    assert sorted_names(["b", 10, 9, 2**53 + 1, 2**53, "10", "B"]) == (9, 10, 2**53, 2**53 + 1, "10", "B", "b")


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=20))
def test_nesting_is_what_loops_say(rows):
    fine, coarse = (np.array([row[side] for row in rows], dtype=np.int64) for side in (0, 1))
    groups = {}
    for a, b in rows:
        groups.setdefault(a, set()).add(b)
    assert nests(fine, coarse) == all(len(found) == 1 for found in groups.values())


@given(st.lists(st.integers(0, 15), min_size=1, max_size=30), st.permutations(["species", "family", "order"]))
def test_a_tree_is_one_chain_whatever_the_order_of_its_columns(species, columns):
    values = {"species": np.array(species), "family": np.array(species) // 2, "order": np.array(species) // 6}
    chain = one_chain({name: values[name] for name in columns})
    assert len(chain) == 3
    assert all(nests(values[fine], values[coarse]) for fine, coarse in pairwise(chain))


def test_crossing_groupings_are_no_chain():
    assert one_chain({"make": np.array([0, 0, 1, 1]), "body": np.array([0, 1, 0, 1])}) == ()
    assert one_chain({}) == ()
