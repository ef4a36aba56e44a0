import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.evaluation.pair_counts import PairCounts
from kinfold.evaluation.roc import area, equal_error_rate, roc_of
from tests.evaluation import pairs_oracle as oracle


def counts_of(positive, negative):
    sims = sorted(set(positive))
    above = [*sims[1:], math.inf]
    columns = (
        [positive.count(s) for s in sims],
        [negative.count(s) for s in sims],
        [sum(a < s < b for s in negative) for a, b in zip(sims, above, strict=True)],
    )
    return PairCounts(torch.tensor(sims).double(), *map(torch.tensor, columns), len(negative))


some = st.lists(st.integers(0, 8).map(float), min_size=1, max_size=12)


@given(some, some)
def test_area_and_equal_error_equal_a_walk_over_all_thresholds(positive, negative):
    counts = counts_of(positive, negative)
    assert area(counts) == pytest.approx(oracle.auc(positive, negative), abs=1e-12)
    assert equal_error_rate(counts) == pytest.approx(oracle.eer(positive, negative), abs=1e-12)


@given(some, some)
def test_the_curve_rises_and_its_points_are_those_of_the_loops(positive, negative):
    roc = roc_of(counts_of(positive, negative))
    assert [
        tuple(roc.at(i).to_dict()[name] for name in ("threshold", "n_true_accepts", "n_false_accepts"))
        for i in range(len(roc.threshold))
    ] == oracle.curve(positive, negative)
    assert (roc.tar.diff() > 0).all() and (roc.far.diff() >= 0).all() and roc.tar[-1] == 1
    gap = [
        abs(Fraction(false, len(negative)) - 1 + Fraction(true, len(positive)))
        for _, true, false in oracle.curve(positive, negative)
    ]
    assert roc.at_equal_error() == roc.at(gap.index(min(gap))), "the first of the nearest points"


@given(some, some, st.sampled_from([0.05, 0.1, 1 / 3, 0.5, 1.0]))
def test_points_within_a_rate_are_the_best_ones(positive, negative, rate):
    roc = roc_of(counts_of(positive, negative))
    found = roc.at_far(rate)
    assert (found is None) == (rate < 1 / len(negative))
    if found is not None:
        assert found.tar == oracle.at_far(positive, negative, rate)
        assert found.far <= rate
        assert math.isinf(found.threshold) == (found.tar == 0)
    enough = [false for _, true, false in oracle.curve(positive, negative) if true / len(positive) >= rate]
    assert roc.at_tar(rate).n_false_accepts == min(enough)
    assert roc.at_tar(rate).tar >= rate


def test_numbers_of_pairs_beyond_the_product_of_32_bits_do_not_overflow():
    half = 3 * 10**9
    counts = PairCounts(
        torch.tensor([0.0, 1.0]), torch.tensor([half, half]), torch.tensor([0, 0]), torch.tensor([2 * half, 0]), 4 * half
    )
    assert area(counts) == 0.75
    assert equal_error_rate(counts) == pytest.approx(0.5)
