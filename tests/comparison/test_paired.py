"""Paired bootstrap over seeds and queries, against loops, against full enumeration, and by its coverage."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.comparison.paired import bootstrap_means, paired_intervals
from kinfold.errors import ConfigError, DataError, ShapeError


def loop_means(difference, group, over, resamples, seed):
    """Draw seeds, then queries or classes, one by one, and average what was drawn."""
    random = np.random.default_rng(seed)
    n_seeds, n_queries = difference.shape
    classes = sorted(set(group.tolist()))
    means = []
    for _ in range(resamples):
        seeds = [int(random.integers(n_seeds)) for _ in range(n_seeds)]
        if over == "query":
            queries = [int(random.integers(n_queries)) for _ in range(n_queries)]
        else:
            drawn = [classes[int(random.integers(len(classes)))] for _ in classes]
            queries = [q for c in drawn for q in range(n_queries) if group[q] == c]
        means.append(sum(difference[s, q] for s in seeds for q in queries) / (len(seeds) * len(queries)))
    return np.array(means)


@pytest.mark.parametrize("over", ["query", "class"])
def test_the_resampled_means_are_distributed_as_those_of_the_loops(over):
    random = np.random.default_rng(1)
    group = np.array([0, 0, 0, 1, 2, 2, 3, 3, 3, 3])
    difference = random.normal(0.1, 0.5, (4, 10)) + random.normal(0, 0.4, (4, 1)) + random.normal(0, 0.4, 4)[group]
    fast = bootstrap_means(difference[None], group, over=over, resamples=6000, seed=0)[0]
    slow = loop_means(difference, group, over, 6000, seed=5)
    probes = np.linspace(slow.min(), slow.max(), 200)
    shares = [(means[:, None] <= probes + 1e-9).mean(0) for means in (fast, slow)]
    assert np.abs(shares[0] - shares[1]).max() < 0.03, "chance alone stays below 0.03 in all but one case of 200"
    assert abs(fast.std() / slow.std() - 1) < 0.05


def test_every_draw_of_a_small_case_comes_as_often_as_it_should():
    difference = np.array([[0.0, 1.0], [10.0, 100.0]])
    expected: dict[float, float] = {}
    for seeds in product(range(2), repeat=2):
        for queries in product(range(2), repeat=2):
            mean = float(difference[np.ix_(seeds, queries)].mean())
            expected[mean] = expected.get(mean, 0) + 1 / 16
    found = bootstrap_means(difference[None], np.array([0, 1]), over="query", resamples=40_000, seed=0)[0]
    values, counts = np.unique(found, return_counts=True)
    assert values.tolist() == sorted(expected)
    for value, count in zip(values, counts, strict=True):
        assert abs(count / 40_000 - expected[float(value)]) < 0.01


def test_whole_classes_stay_together():
    difference = np.array([[0.0, 0.0, 1.0, 1.0, 1.0]])
    found = bootstrap_means(difference[None], np.array([0, 0, 1, 1, 1]), over="class", resamples=500, seed=0)[0]
    assert set(np.round(found, 6)) == {0.0, 0.6, 1.0}, "both classes, or one of them twice; sizes count"


def test_classes_need_not_lie_together():
    random = np.random.default_rng(0)
    difference, group, order = random.normal(size=(1, 3, 20)), np.arange(20) // 4, random.permutation(20)
    sorted_, mixed = (
        bootstrap_means(d, g, over="class", resamples=50, seed=0)
        for d, g in ((difference, group), (difference[..., order], group[order]))
    )
    np.testing.assert_allclose(sorted_, mixed)


def test_one_seed_leaves_the_queries_alone_to_vary():
    random = np.random.default_rng(0)
    d = random.normal(size=50)
    (ends,) = paired_intervals(d[None, None], np.zeros(50, dtype=int))
    error = d.std() / np.sqrt(50)
    assert abs(ends.low - (d.mean() - 1.96 * error)) < 0.15 * error
    assert abs(ends.high - (d.mean() + 1.96 * error)) < 0.15 * error


def test_seeds_widen_the_interval():
    random = np.random.default_rng(0)
    noise = random.normal(size=(1, 8, 200))
    same = np.repeat(noise[:, :1], 8, axis=1)
    narrow, wide = (paired_intervals(d, np.zeros(200, dtype=int))[0] for d in (same, same + random.normal(size=(1, 8, 1))))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_metrics_together_are_metrics_alone():
    random = np.random.default_rng(0)
    difference, group = random.normal(size=(3, 4, 30)), np.arange(30) // 5
    for over in ("query", "class"):
        together = paired_intervals(difference, group, over=over)
        alone = [paired_intervals(difference[m : m + 1], group, over=over)[0] for m in range(3)]
        np.testing.assert_allclose(together, alone)


def test_blocks_of_resamples_change_nothing_but_the_draws(monkeypatch):
    difference, group = np.random.default_rng(0).normal(size=(1, 3, 40)), np.arange(40)
    whole = bootstrap_means(difference, group, over="query", resamples=300, seed=0)
    monkeypatch.setattr("kinfold.comparison.paired._COUNTS_AT_ONCE", 40 * 7)
    np.testing.assert_allclose(bootstrap_means(difference, group, over="query", resamples=300, seed=0), whole)


@given(value=st.floats(-1, 1), n_seeds=st.integers(1, 4), n_queries=st.integers(2, 9))
def test_a_constant_difference_has_an_interval_of_no_width(value, n_seeds, n_queries):
    difference, group = np.full((1, n_seeds, n_queries), value), np.arange(n_queries) // 2 + 7
    for over in ("query", "class"):
        if over == "class" and len(set(group.tolist())) < 2:
            continue
        np.testing.assert_allclose(paired_intervals(difference, group, over=over, resamples=50)[0], [value, value], atol=1e-12)


@pytest.mark.parametrize(("n_seeds", "expected"), [(10, (0.88, 1.0)), (3, (0.6, 0.93))])
def test_the_interval_covers_the_truth_about_as_often_as_it_says_and_less_with_three_seeds(n_seeds, expected):
    random = np.random.default_rng(3)
    n_trials, hits, truth = 150, 0, 0.3
    for _ in range(n_trials):
        seeds, queries = random.normal(0, 0.2, (1, n_seeds, 1)), random.normal(0, 1, (1, 1, 100))
        difference = truth + seeds + queries + random.normal(0, 0.5, (1, n_seeds, 100))
        (ends,) = paired_intervals(difference, np.arange(100), resamples=300)
        hits += ends.low <= truth <= ends.high
    low, high = expected
    assert low <= hits / n_trials <= high, f"{hits} of {n_trials}"


def test_the_same_seed_gives_the_same_interval_and_another_one_nearly():
    difference, group = np.random.default_rng(0).normal(size=(1, 3, 40)), np.arange(40)
    first, again, other = (paired_intervals(difference, group, seed=seed)[0] for seed in (0, 0, 1))
    assert first == again != other
    np.testing.assert_allclose(first, other, atol=0.05)


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ShapeError, match="give \\(metrics, seeds, queries\\)"):
        paired_intervals(np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(ConfigError, match="did you mean `class`"):
        paired_intervals(np.zeros((1, 2, 3)), np.zeros(3), over="clas")
    with pytest.raises(DataError, match="over class needs at least two"):
        paired_intervals(np.zeros((1, 2, 3)), np.zeros(3), over="class")
