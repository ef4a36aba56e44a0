"""Which queries are shown: kinds by plain loops, candidates by the rule, evenly spaced."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kinfold.reports.chosen_queries import compared, failures, kinds_of, turned


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 999))
def test_kinds_are_those_of_plain_loops(n, k, seed):
    random = np.random.default_rng(seed)
    label = random.integers(0, 4, n)
    group = label // 2
    query = random.permutation(n)[: max(1, n // 2)]
    index = random.integers(-1, n, (len(query), k))
    found = kinds_of(index, label, group, query)
    for i, row in enumerate(query):
        for j, other in enumerate(index[i]):
            worth = -1 if other < 0 else 2 if label[other] == label[row] else 1 if group[other] == group[row] else 0
            assert found[i, j] == worth


def test_compared_queries_are_those_whose_neighbours_differ_evenly_spaced():
    one = np.zeros((100, 3), dtype=int)
    other = one.copy()
    other[10:70, 2] = 1
    found = compared([one, other], 3, names=("base", "hpl"))
    assert (found.n_candidates, found.place.tolist()) == (60, [20, 40, 60])
    assert "between base and hpl" in found.rule
    assert compared([one], 2).place.tolist() == [25, 75]
    assert compared([one, one], 2).place.tolist() == []


def test_failures_are_queries_whose_first_neighbour_is_of_another_class():
    last = np.array([[1, 2], [1, 0], [0, 2], [2, 0], [0, 2]])
    assert failures(last, 9).place.tolist() == [0, 1, 2, 4]
    assert failures(np.array([[-1], [0]]), 9).place.tolist() == [1]


@given(st.integers(1, 30), st.integers(1, 6), st.integers(0, 999))
def test_turned_queries_are_failed_by_one_and_answered_at_once_by_the_other(n, k, seed):
    random = np.random.default_rng(seed)
    one, other = (random.integers(-1, 3, (n, k)) for _ in range(2))
    expected = [i for i in range(n) if 2 not in one[i, :4].tolist() and other[i, 0] == 2]
    found = turned(one, other, 99, names=("base", "l2a_nc"))
    assert found.place.tolist() == expected
    assert found.n_candidates == len(expected)
    assert "for which base finds nothing of the class among the first four and l2a_nc finds it first" in found.rule
