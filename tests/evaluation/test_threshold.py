import json
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.core.similarity import SIMILARITIES
from kinfold.errors import ConfigError, DataError
from kinfold.evaluation.threshold import Threshold, fit_threshold, threshold_from
from kinfold.evaluation.verification import verification
from tests.evaluation import pairs_oracle as oracle


def sets(seed=0, n=200, d=8):
    """Return embeddings and labels of two disjoint sets of classes."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(10, (2 * n,), generator=generator)
    label[n:] += 10
    x = torch.randn(20, d, generator=generator)[label] + torch.randn(2 * n, d, generator=generator)
    return (x[:n], label[:n]), (x[n:], label[n:])


@pytest.mark.parametrize("similarity", sorted(SIMILARITIES))
@pytest.mark.parametrize("goal", [{"far": 0.01}, {"tar": 0.8}, {"eer": True}, {}])
def test_its_own_pairs_have_the_rates_that_were_fitted(similarity, goal):
    val, _ = sets()
    threshold = fit_threshold(*val, similarity=similarity, **goal)
    assert threshold.apply(*val, allow_shared_classes=True) == threshold.fitted
    assert threshold.fitted.threshold == threshold.value


@given(st.integers(0, 2**30), st.sampled_from([0.2, 0.5, 1.0]))
@settings(max_examples=60, deadline=None)
def test_thresholds_and_their_rates_elsewhere_equal_plain_loops(seed, rate):
    generator = torch.Generator().manual_seed(seed)
    x, other = (torch.randint(-2, 3, (8, 2), generator=generator).float() for _ in range(2))
    label, other_label = torch.arange(8) % 3, torch.arange(8) % 2 + 3
    positive, negative = oracle.kinds((x @ x.T).tolist(), label.tolist())
    applied_to = oracle.kinds((other @ other.T).tolist(), other_label.tolist())
    points = oracle.curve(positive, negative)
    goals = {
        "tar": next(t for t, true, _ in points if true / len(positive) >= rate),
        "far": next((t for t, _, false in reversed(points) if false / len(negative) <= rate), None),
        "eer": min(points, key=lambda point: abs(Fraction(point[2], len(negative)) - 1 + Fraction(point[1], len(positive))))[0],
    }
    for goal, expected in goals.items():
        if expected is None:
            with pytest.raises(DataError, match="nothing could be accepted"):
                fit_threshold(x, label, similarity="dot", far=rate)
            continue
        threshold = fit_threshold(x, label, similarity="dot", **{goal: True if goal == "eer" else rate})
        assert threshold.value == expected
        found = threshold.apply(other, other_label)
        counts = (found.n_true_accepts, found.n_positive, found.n_false_accepts, found.n_negative)
        assert counts == tuple(n for side in applied_to for n in (sum(s >= expected for s in side), len(side)))


def test_test_labels_and_test_rows_cannot_move_the_threshold():
    val, (x, label) = sets()
    threshold = fit_threshold(*val, far=0.01)
    kept = threshold.to_json()
    first = threshold.apply(x, label)
    shuffled = threshold.apply(x, label[torch.randperm(len(label))])
    assert first != shuffled, "the labels do count in what is reported"
    assert threshold.to_json() == kept
    assert fit_threshold(*val, far=0.01).value == threshold.value


def test_fitted_on_the_test_pairs_it_would_look_better_than_it_is():
    better = 0
    for seed in range(20):
        val, test = sets(seed, n=60, d=4)
        honest = fit_threshold(*val, far=0.02).apply(*test)
        peeking = fit_threshold(*test, far=0.02).fitted
        assert peeking.far <= 0.02
        better += honest.far > 0.02
    assert better > 3, "what was promised on the fitted pairs is often broken on others"


def test_classes_that_it_was_fitted_on_are_refused_unless_accepted():
    (x, label), _ = sets()
    threshold = fit_threshold(x, [f"bird {c}" for c in label.tolist()], eer=True)
    with pytest.raises(DataError, match="1 classes are among those that the threshold was fitted on: 'bird 3'"):
        threshold.apply(x[:4], ["bird 3", "bird 3", "owl", "owl"])
    assert threshold.apply(x[:4], ["bird 3", "bird 3", "owl", "owl"], allow_shared_classes=True).n_positive == 2
    with pytest.raises(DataError, match="10 classes .* and 5 more"):
        threshold.apply(x, [f"bird {c}" for c in label.tolist()])


def test_rows_that_are_neither_query_nor_gallery_share_no_classes():
    (x, label), _ = sets()
    threshold = fit_threshold(x, label, eer=True, is_query=label < 5, is_gallery=label < 5)
    assert threshold.classes == {0, 1, 2, 3, 4}
    assert threshold.apply(x[label > 4], label[label > 4]).n_positive > 0


def test_items_and_flags_reach_the_data_that_it_is_applied_to():
    val, (x, label) = sets()
    threshold = fit_threshold(*val, eer=True)
    item, is_query, is_gallery = torch.arange(200) // 2, torch.arange(200) < 90, torch.arange(200) > 40
    found = threshold.apply(x, label, item=item, is_query=is_query, is_gallery=is_gallery)
    same = verification(x, label, item=item, is_query=is_query, is_gallery=is_gallery)
    assert (found.n_positive, found.n_negative) == (same.n_positive, same.n_negative)


def test_a_separable_set_gives_a_threshold_between_its_two_kinds_of_pairs():
    x = torch.eye(6).repeat_interleave(5, dim=0) + 0.05 * torch.randn(30, 6)
    label = torch.arange(30) // 5
    value = fit_threshold(x, label, eer=True).value
    unit = torch.nn.functional.normalize(x.double())
    positive, negative = oracle.kinds((unit @ unit.T).tolist(), label.tolist())
    assert max(negative) < value <= min(positive) + 1e-6


def test_a_threshold_of_doubles_means_the_same_for_floats():
    third = 1 / 3
    threshold = Threshold(third, "EER", fit_threshold(*sets()[0], eer=True).fitted, frozenset(), SIMILARITIES["dot"])
    x = torch.tensor([[1.0], [torch.tensor(third)], [0.2], [1.0]])  # 1/3 as a float lies above 1/3 as a double
    below = torch.nextafter(x[1], torch.tensor([0.0]))
    assert threshold.apply(x[[0, 1, 3]], [0, 0, 1]).n_true_accepts == 1
    assert threshold.apply(torch.stack([x[0], below, x[3]]), [0, 0, 1]).n_true_accepts == 0
    tenth = Threshold(0.7, "EER", threshold.fitted, frozenset(), SIMILARITIES["dot"])
    near = torch.tensor([[1.0], [0.7], [-1.0]])  # 0.7 as a float lies below 0.7 as a double
    assert tenth.apply(near, [0, 0, 1]).n_true_accepts == 0


def test_too_few_negative_pairs_for_a_rate_are_an_error_that_says_how_many_there_are():
    (x, label), _ = sets(n=30)
    with pytest.raises(DataError, match=r"no threshold for FAR <= 0.0001: not resolved: 0.0001 of \d+ negative pairs"):
        fit_threshold(x, label, far=1e-4)
    with pytest.raises(DataError, match="no positive pair"):
        fit_threshold(x, label, eer=True).apply(x[:2], ["a", "b"])


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ({"far": 0.1, "tar": 0.9}, "far = 0.1, tar = 0.9"),
        ({"far": 0.1, "eer": True}, "fit a threshold for one of them"),
        ({"far": 0.0}, "far is 0.0"),
        ({"tar": 1.2}, "tar is 1.2"),
        ({"similarity": "cosin"}, "did you mean"),
    ],
)
def test_goals_that_make_no_sense_are_refused(goal, message):
    with pytest.raises(ConfigError, match=message):
        fit_threshold(*sets()[0], **goal)


def test_it_reads_well_and_both_rates_stand_side_by_side():
    val, test = sets()
    threshold = fit_threshold(*val, far=0.01)
    assert str(threshold).startswith(f"cosine >= {threshold.value:.6g}, fitted for FAR <= 0.01: FAR ")
    line = threshold.beside(threshold.apply(*test), fitted_on="val", applied_to="test")
    assert line.startswith("fitted on val: FAR ") and "; on test: FAR " in line
    kept = json.loads(threshold.to_json())
    assert (kept["value"], kept["similarity"], kept["n_classes"]) == (threshold.value, "cosine", 10)
    assert kept["fitted"]["n_negative"] == threshold.fitted.n_negative
    assert repr(threshold) == f"Threshold({threshold})"


def test_a_verification_that_is_there_already_gives_the_same_thresholds():
    val, _ = sets()
    found = verification(*val)
    for goal in ({"far": 0.01}, {"tar": 0.9}, {"eer": True}):
        assert threshold_from(found, **goal).to_dict() == fit_threshold(*val, **goal).to_dict()
