import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.evaluation import counting
from kinfold.evaluation.counting import CountAbove


@given(st.integers(1, 6), st.integers(1, 130), st.integers(1, 40), st.integers(0, 2**30))
def test_both_ways_of_counting_equal_a_plain_comparison(n_rows, n_thresholds, n_columns, seed):
    generator = torch.Generator().manual_seed(seed)
    sim = torch.randint(-3, 4, (n_rows, n_columns), generator=generator).float()
    threshold = torch.randint(-4, 5, (n_rows, n_thresholds), generator=generator).float()
    sim[0, 0], threshold[0, 0] = -torch.inf, torch.inf
    counter = CountAbove(threshold)
    for part in sim.split(7, dim=1):
        counter.add(part)
    assert (counter.result() == (sim[:, None, :] > threshold[:, :, None]).sum(dim=2)).all()


@pytest.mark.parametrize("n", [counting.BUCKETS_FROM - 1, counting.BUCKETS_FROM])
def test_thresholds_on_either_side_of_the_switch_count_the_same(n):
    sim, threshold = torch.randn(3, 50), torch.randn(3, n)
    counter = CountAbove(threshold)
    counter.add(sim)
    assert counter._in_buckets == (n == counting.BUCKETS_FROM)
    assert (counter.result() == (sim[:, None, :] > threshold[:, :, None]).sum(dim=2)).all()
