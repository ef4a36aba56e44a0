import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.core.similarity import SIMILARITIES
from kinfold.errors import ConfigError, ShapeError
from kinfold.evaluation.exclusion import SameItem
from kinfold.evaluation.neighbours import nearest


def lists(found):
    return [found.of(i)[0].tolist() for i in range(len(found.start) - 1)]


def by_loop(sim, allowed, k):
    return [
        sorted((j for j in range(len(row)) if ok[j]), key=lambda j: (-row[j], j))[:k]
        for row, ok in zip(sim, allowed, strict=True)
    ]


@given(st.integers(1, 9), st.integers(1, 30), st.integers(1, 40), st.integers(0, 2**30))
@settings(max_examples=60, deadline=None)
def test_lists_are_sorted_by_similarity_then_row_and_clipped(n, m, k, seed):
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randint(-1, 2, (rows, 3), generator=generator).float() for rows in (n, m))
    same = SameItem(*(torch.randint(6, (rows,), generator=generator) for rows in (n, m)))
    allowed = ~same(torch.arange(n), torch.arange(m))
    wanted = by_loop((x @ y.T).tolist(), allowed.tolist(), k)
    for rule in (same, same.__call__):
        found = nearest(x, y, k, similarity="dot", exclude=rule)
        assert lists(found) == wanted
        for i in range(n):
            index, sim = found.of(i)
            assert sim.tolist() == (x[i] @ y[index].T).tolist()


@pytest.mark.parametrize("similarity", [*sorted(SIMILARITIES), lambda x, y: -torch.cdist(x, y, p=1)])
def test_a_short_list_is_the_start_of_a_long_one_for_every_budget(similarity):
    x = torch.randn(300, 3).mul(2).round()
    y = torch.cat([torch.randn(4200, 3).mul(2).round(), x])
    long = lists(nearest(x, y, 10**9, similarity=similarity))
    assert sorted(long[0]) == list(range(4500))
    for k, memory in ((1, 10**6), (5, 10**9), (10, 10**6), (2100, 10**6)):
        assert lists(nearest(x, y, k, similarity=similarity, memory=memory)) == [row[:k] for row in long]


def test_a_row_leaves_its_own_item_out_wherever_it_stands():
    x = torch.eye(4)[[0, 0, 1, 2]]
    item = torch.tensor([7, 7, 8, 9])
    assert lists(nearest(x, x, 1, exclude=SameItem(item, item))) == [[2], [2], [0], [0]]


def test_a_query_with_nothing_to_find_has_an_empty_list():
    x, item = torch.randn(3, 2), torch.tensor([1, 1, 2])
    found = nearest(x, x[:2], 5, exclude=SameItem(item, item[:2]))
    assert [len(row) for row in lists(found)] == [0, 0, 2]


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_a_k_that_makes_no_sense_is_refused(k):
    with pytest.raises((ConfigError, TypeError)):
        nearest(torch.randn(2, 2), torch.randn(2, 2), k)


def test_a_misshapen_rule_or_side_is_refused():
    x = torch.randn(2, 2)
    with pytest.raises(ShapeError):
        nearest(x, torch.randn(2, 3), 1)
    with pytest.raises(ShapeError, match="exclude returned"):
        nearest(x, x, 1, exclude=lambda rows, columns: torch.zeros(1, dtype=torch.bool))
