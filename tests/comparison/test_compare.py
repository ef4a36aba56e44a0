"""Rows of a comparison: means, deviations, paired differences, and what is refused."""

import numpy as np
import pytest

from kinfold.comparison.compare import compare
from kinfold.errors import ConfigError, DataError
from tests.comparison.conftest import PROTOCOL, made_run

METRICS = ["recall_at_1"]
BASE = {0: [1, 0, 1, 0, 0, 0], 1: [1, 1, 1, 0, 0, 1]}
BETTER = {0: [1, 1, 1, 0, 1, 0], 1: [1, 1, 1, 1, 0, 1]}


def test_means_deviations_and_differences_are_those_of_loops(make_group):
    base, other = compare(make_group("base", BASE), [make_group("other", BETTER, model__dim=8)], metrics=METRICS)
    means = [sum(values) / 6 for values in BASE.values()]
    assert base.values["recall_at_1"].mean == pytest.approx(sum(means) / 2)
    assert base.values["recall_at_1"].deviation == pytest.approx(abs(means[0] - means[1]) / 2**0.5)
    assert base.differences == {}
    found = other.differences["recall_at_1"]
    total = sum(b - a for seed in BASE for a, b in zip(BASE[seed], BETTER[seed], strict=True))
    assert found.mean == pytest.approx(total / 12)
    assert found.over_queries.low <= found.mean <= found.over_queries.high
    assert found.over_classes is not None and found.over_classes.low <= found.mean <= found.over_classes.high
    assert found.seeds == (0, 1)
    assert base.minutes == pytest.approx(1.0)


def test_seeds_are_paired_with_their_own(make_group):
    base = make_group("base", {0: [0] * 6, 1: [1] * 6})
    swapped = make_group("other", {1: [1] * 6, 0: [0] * 6}, model__dim=8)
    difference = compare(base, [swapped], metrics=METRICS)[1].differences["recall_at_1"]
    assert difference.mean == 0 and tuple(difference.over_queries) == (0, 0), "by seed, not by place"


def test_the_same_queries_are_drawn_for_both_sides(make_group):
    values = {0: [0, 1, 0, 1, 0, 1]}
    other = make_group("other", {0: [1, 2, 1, 2, 1, 2]}, model__dim=8)
    ends = compare(make_group("base", values), [other], metrics=METRICS)[1].differences["recall_at_1"].over_queries
    assert tuple(ends) == (1, 1), "what both find equally hard cancels"


def test_only_common_seeds_are_compared(make_group):
    base = make_group("base", {**BASE, 5: [1] * 6})
    row = compare(base, [make_group("other", {1: BETTER[1], 9: [0] * 6}, model__dim=8)], metrics=METRICS)[1]
    assert row.seeds == (1, 9) and row.differences["recall_at_1"].seeds == (1,)
    assert row.differences["recall_at_1"].mean == pytest.approx(np.mean(np.subtract(BETTER[1], BASE[1])))
    with pytest.raises(ConfigError, match=r"base and other have no seed in common \(0, 1, 5 and 7\)"):
        compare(base, [make_group("other", {7: [1] * 6})], metrics=METRICS)


def test_a_failed_group_has_no_difference_and_hides_nothing(make_group):
    gone = make_group("gone", {}, failed={0: "out of memory"})
    half = make_group("half", {9: [1] * 6}, failed={0: "out of memory"}, model__dim=8)
    rows = compare(make_group("base", BASE), [gone, half], metrics=METRICS)
    assert rows[1].values == {} and rows[1].differences == {} and rows[1].failed == {0: "out of memory"}
    assert rows[2].seeds == (9,) and rows[2].differences == {}
    assert compare(gone, [half], metrics=METRICS)[1].differences == {}


def test_runs_measured_otherwise_are_refused_with_the_key(make_group):
    other = make_group("other", BETTER, protocol={**PROTOCOL, "images": "7 images bb"})
    message = r"base-0 and other-0 cannot be compared: they differ in `images` \(\"6 images aa\", \"7 images bb\"\)"
    with pytest.raises(ConfigError, match=message):
        compare(make_group("base", BASE), [other], metrics=METRICS)


def test_other_queries_under_the_same_protocol_are_refused_all_the_same(make_group):
    base, other = make_group("base", BASE), make_group("other", BETTER)
    level = other.runs[1].per_query.levels["label"]
    level.query[:] = level.query[::-1].copy()
    with pytest.raises(DataError, match="did not score the same queries"):
        compare(base, [other], metrics=METRICS)


def test_an_unmeasured_metric_is_named(make_group):
    with pytest.raises(ConfigError, match="metric 'recall_at_2' was not measured: did you mean `recall_at_1`"):
        compare(make_group("base", BASE), [make_group("other", BETTER)], metrics=["recall_at_2"])


@pytest.mark.parametrize(
    ("settings", "factor", "besides"),
    [
        ({"model__dim": 8}, (), set()),
        ({"objective__loss": "triplet"}, (), set()),
        ({"objective__loss": "triplet", "model__dim": 8}, (), {"model.dim"}),
        ({"objective__loss": "triplet", "train__epochs": 9, "model__dim": 8}, ("model",), {"train.epochs"}),
        ({"model__dim": 8, "train__epochs": 9}, ("model.dim", "train.epochs"), set()),
        ({"objective__loss": "triplet", "objective__pick": "batch_hard"}, (), set()),
    ],
)
def test_what_makes_a_comparison_unfair_is_said_unless_it_is_the_factor(make_group, settings, factor, besides):
    row = compare(make_group("base", BASE), [make_group("other", BETTER, factor=factor, **settings)], metrics=METRICS)[1]
    assert set(row.besides) == besides
    if "model.dim" in besides:
        assert row.besides["model.dim"] == (64, 8)


def test_interrupted_runs_do_not_count_for_the_time(make_group):
    group = make_group("base", {0: BASE[0]}, seconds=120.0)
    group.runs[1] = made_run(BASE[1], seed=1, seconds=None)
    assert compare(group, [], metrics=METRICS)[0].minutes == pytest.approx(2.0)
    assert compare(make_group("base", BASE, seconds=None), [], metrics=METRICS)[0].minutes is None


def test_one_class_has_no_interval_over_classes(make_group):
    found = compare(make_group("base", {0: [0, 1]}), [make_group("other", {0: [1, 1]})], metrics=METRICS)[1]
    assert found.differences["recall_at_1"].over_classes is None
