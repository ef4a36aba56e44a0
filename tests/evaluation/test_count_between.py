import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.evaluation.count_between import CountBetween

STEP = 2.0**-19


def by_loops(threshold, values):
    tied = [sum(v == t for v in values) for t in threshold]
    upper = [*threshold[1:], float("inf")]
    return tied, [sum(t < v < u for v in values) for t, u in zip(threshold, upper, strict=True)]


@given(
    st.lists(st.integers(-(2**19), 2**19) | st.integers(-3, 3), min_size=1, max_size=12, unique=True),
    st.lists(st.integers(-(2**19), 2**19) | st.integers(-4, 4) | st.none(), min_size=1, max_size=40),
)
@settings(max_examples=100, deadline=None)
def test_both_ways_of_counting_equal_plain_loops(thresholds, values):
    threshold = torch.tensor(sorted(thresholds)).float() * STEP
    sim = torch.tensor([-torch.inf if v is None else v * STEP for v in values])
    expected = by_loops(threshold.tolist(), sim.tolist())
    for memory in (10**6, 10**9):
        counter = CountBetween(threshold, step=STEP, memory=memory)
        assert counter.by_step == (memory == 10**9)
        for tile in sim.split(7):
            counter.add(tile[None])
        tied, between = counter.result()
        assert (tied.tolist(), between.tolist()) == expected


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neighbouring_floats_are_told_apart(dtype):
    one = torch.ones(1, dtype=dtype)
    threshold = torch.cat([one, torch.nextafter(one, one + 1)])
    counter = CountBetween(threshold, step=None, memory=10**9)
    counter.add(torch.cat([one, one, threshold[1:], one + 1, one - 1]).reshape(1, -1))
    tied, between = counter.result()
    assert (tied.tolist(), between.tolist()) == ([2, 1], [0, 1])


def test_a_step_too_fine_for_a_table_of_steps_is_searched():
    assert not CountBetween(torch.zeros(1, dtype=torch.float64), step=2.0**-50, memory=10**12).by_step
