import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score, roc_curve

from kinfold.core.similarity import SIMILARITIES
from kinfold.errors import ConfigError, DataError, KinfoldError, ShapeError
from kinfold.evaluation.verification import verification
from tests.evaluation import pairs_oracle as oracle


def equal(a, b):
    return (
        (a.auc, a.eer, a.at_eer, a.tar_at_far) == (b.auc, b.eer, b.at_eer, b.tar_at_far)
        and torch.equal(a.roc.threshold, b.roc.threshold)
        and torch.equal(a.roc.n_true_accepts, b.roc.n_true_accepts)
        and torch.equal(a.roc.n_false_accepts, b.roc.n_false_accepts)
    )


def clustered(n, n_classes, d=8, seed=0):
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(n_classes, (n,), generator=generator)
    centre = torch.randn(n_classes, d, generator=generator)
    return centre[label] + torch.randn(n, d, generator=generator), label


@given(st.integers(2, 9), st.integers(1, 3), st.booleans(), st.integers(0, 2**30))
@settings(max_examples=150, deadline=None)
def test_every_number_equals_plain_loops_with_ties_duplicates_items_and_flags(n, n_classes, flagged, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-1, 3, (n, 2), generator=generator).float()
    label, item = (torch.randint(k, (n,), generator=generator) for k in (n_classes, n))
    flags = [torch.rand(n, generator=generator) < 0.6 for _ in range(2)] if flagged else [None, None]
    if flagged and not (flags[0].any() and flags[1].any()):
        return
    sim = (x @ x.T).tolist()
    positive, negative = oracle.kinds(sim, label.tolist(), item.tolist(), *(None if f is None else f.tolist() for f in flags))
    options = {"item": item, "is_query": flags[0], "is_gallery": flags[1], "similarity": "dot", "fars": (0.01, 0.25, 0.5, 1.0)}
    if not positive or not negative:
        with pytest.raises(DataError, match="no positive pair" if not positive else "no negative pair"):
            verification(x, label, **options)
        return
    found = verification(x, label, **options)
    roc = found.roc
    assert (found.n_positive, found.n_negative) == (len(positive), len(negative))
    points = zip(roc.threshold.tolist(), roc.n_true_accepts.tolist(), roc.n_false_accepts.tolist(), strict=True)
    assert list(points) == oracle.curve(positive, negative)
    assert found.auc == pytest.approx(oracle.auc(positive, negative), abs=1e-12)
    assert found.eer == pytest.approx(oracle.eer(positive, negative), abs=1e-12)
    for far, rates in found.tar_at_far.items():
        assert (rates is None) == (far < 1 / len(negative))
        if rates is not None:
            assert rates.tar == oracle.at_far(positive, negative, far)
            assert rates.far <= far
            assert rates.n_true_accepts == sum(s >= rates.threshold for s in positive)
            assert rates.n_false_accepts == sum(s >= rates.threshold for s in negative)


@pytest.mark.parametrize("similarity", sorted(SIMILARITIES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_curve_and_area_agree_with_scikit_learn(similarity, dtype):
    x, label = clustered(300, 12)
    x = x.to(dtype)
    sim = SIMILARITIES[similarity](x.double(), x.double()).numpy()
    row, column = np.triu_indices(300, 1)
    alike, value = (label[row] == label[column]).numpy(), sim[row, column]
    found = verification(x, label, similarity=similarity, fars=(0.01,))
    assert found.auc == pytest.approx(roc_auc_score(alike, value), abs=1e-6)
    far, tar, threshold = roc_curve(alike, value, drop_intermediate=False)
    assert found.tar_at_far[0.01].tar == pytest.approx(tar[far <= 0.01].max(), abs=2 / alike.sum())
    crossing = np.flatnonzero(far >= 1 - tar)[0]
    assert min(far[crossing - 1], 1 - tar[crossing]) - 1e-3 <= found.eer <= max(far[crossing], 1 - tar[crossing - 1]) + 1e-3
    if dtype == torch.float64:
        changes = np.flatnonzero(np.isin(threshold, value[alike]))
        assert found.roc.tar.tolist() == pytest.approx(tar[changes].tolist(), abs=1e-12)
        assert found.roc.far.tolist() == pytest.approx(far[changes].tolist(), abs=1e-12)
        assert found.roc.threshold.tolist() == pytest.approx(threshold[changes].tolist(), abs=1e-6)


@pytest.mark.parametrize("similarity", [*sorted(SIMILARITIES), lambda x, y: -torch.cdist(x, y, p=1)])
def test_values_are_equal_for_every_budget(similarity):
    x, label = clustered(2300, 40)
    found = [verification(x, label, similarity=similarity, memory=memory) for memory in ("1MB", "40MB", "2GB")]
    assert equal(found[0], found[1])
    assert equal(found[0], found[2])


def test_doubles_are_counted_as_doubles_for_every_budget():
    x, label = clustered(2300, 40)
    found = [verification(x.double(), label, memory=memory) for memory in ("1MB", "2GB")]
    assert equal(*found)
    assert found[0].roc.threshold.dtype == torch.float64
    assert len(found[0].roc.threshold) > len(verification(x, label).roc.threshold), "float32 ties where float64 does not"


def test_values_are_equal_for_every_budget_with_flags_and_items():
    x, label = clustered(2600, 40)
    generator = torch.Generator().manual_seed(1)
    options = {
        "item": torch.randint(2000, (2600,), generator=generator),
        "is_query": torch.rand(2600, generator=generator) < 0.4,
        "is_gallery": torch.rand(2600, generator=generator) < 0.9,
    }
    tight, roomy = (verification(x, label, memory=memory, **options) for memory in ("1MB", "2GB"))
    assert equal(tight, roomy)
    sim = x.double() @ x.double().T  # only the numbers of pairs are looked at
    flags = {name: column.tolist() for name, column in options.items()}
    positive, negative = oracle.kinds(sim.tolist(), label.tolist(), **flags)
    assert (tight.n_positive, tight.n_negative) == (len(positive), len(negative))


@pytest.mark.parametrize("similarity", sorted(SIMILARITIES))
def test_a_collapsed_embedding_scores_exactly_chance(similarity):
    label = torch.arange(3000) // 3
    found = verification(torch.full((3000, 7), 0.3), label, similarity=similarity, fars=(0.1, 1.0))
    assert (found.auc, found.eer, len(found.roc.threshold)) == (0.5, 0.5, 1)
    assert (found.tar_at_far[0.1].tar, found.tar_at_far[0.1].threshold) == (0.0, torch.inf)
    assert found.tar_at_far[1.0].tar == 1
    assert "nothing can be accepted" in str(found)


def test_copies_of_a_row_at_other_lengths_tie_under_cosine():
    x = torch.tensor([0.3, -0.7, 0.11]) * torch.linspace(0.1, 9, 400)[:, None]
    found = verification(x, torch.arange(400) % 20, fars=(0.1,))
    assert found.roc.threshold.tolist() == [1.0]
    assert found.auc == 0.5


@pytest.mark.parametrize("similarity", ["cosine", "negative_euclidean"])
def test_the_order_of_rows_does_not_matter(similarity):
    x, label = clustered(700, 30)
    order = torch.randperm(700)
    assert equal(verification(x, label, similarity=similarity), verification(x[order], label[order], similarity=similarity))


def test_a_separable_set_has_no_error():
    x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    found = verification(x, ["a", "a", "b", "b"], fars=(0.25, 0.2))
    assert (found.auc, found.eer, found.at_eer.tar, found.at_eer.far) == (1, 0, 1, 0)
    assert found.tar_at_far[0.25].tar == 1
    assert found.tar_at_far[0.2] is None, "0.2 of 4 negative pairs is less than one"


def test_a_false_accept_rate_that_the_pairs_cannot_show_is_said_and_not_made_up():
    x, label = clustered(30, 5)
    found = verification(x, label, fars=(1e-4, 1e-1))
    assert found.tar_at_far[1e-4] is None
    assert f"0.0001 of {found.n_negative} negative pairs is less than one false accept" in str(found)
    assert json.loads(found.to_json())["tar_at_far"]["0.0001"] is None
    assert found.tar_at_far[0.1] is not None


def test_distances_are_thresholds_of_their_own_sign_and_size():
    x = torch.tensor([[0.0], [3.0], [100.0], [100.0]])
    found = verification(x, [0, 0, 1, 1], similarity="negative_euclidean", fars=(0.25,))
    assert found.roc.threshold.tolist() == [0.0, -3.0]
    assert str(found.roc.threshold[0].item()) == "0.0"
    assert found.tar_at_far[0.25].threshold == -3


def test_a_small_distance_between_far_rows_is_not_lost_to_rounding():
    x = torch.tensor([[4096.0], [4096.5], [-4096.0], [-4095.0]])
    found = verification(x, [0, 0, 1, 1], similarity="negative_euclidean", fars=(1,))
    assert found.roc.threshold.tolist() == [-0.5, -1.0]


def test_every_kind_of_input_gives_the_same_numbers():
    x, label = clustered(60, 6)
    x = x.half().float()
    plain = verification(x, label)
    for rows, labels in (
        (x.numpy(), label.numpy()),
        (list(x), [f"class {c}" for c in label.tolist()]),
        (x.half(), label + 2**53),
        (x.clone().requires_grad_(), [c + 2**80 for c in label.tolist()]),
    ):
        assert equal(verification(rows, labels), plain)
    with torch.autocast("cpu", torch.bfloat16):
        assert equal(verification(x, label), plain)


def test_arguments_stay_as_they_were():
    x, label = clustered(50, 6)
    copy = x.clone()
    verification(x, label)
    verification(x, label, similarity="dot")
    assert torch.equal(x, copy)


def test_results_read_well_and_survive_json():
    x, label = clustered(300, 10)
    found = verification(x, label, fars=0.01)
    kept = json.loads(found.to_json())
    assert (kept["auc"], kept["eer"], kept["n_classes"], kept["similarity"]) == (found.auc, found.eer, 10, "cosine")
    assert kept["tar_at_far"]["0.01"]["tar"] == found.tar_at_far[0.01].tar
    assert kept["n_positive"] + kept["n_negative"] == 300 * 299 // 2
    assert f"auc              {100 * found.auc:6.2f}" in str(found)
    assert repr(found).startswith("Verification(auc=")
    collapsed = verification(torch.ones(9, 2), [0, 0, 1, 1, 2, 2, 3, 3, 4], fars=0.5).to_json()
    assert json.loads(collapsed)["tar_at_far"]["0.5"]["threshold"] is None


x3 = torch.zeros(3, 2)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((x3, [1, 2]), {}, ShapeError, "label has 2 entries for 3"),
        ((x3, [1, 1, 2]), {"item": [1]}, ShapeError, "item has 1"),
        ((x3, [1, 1, 2]), {"is_query": [True]}, ShapeError, "is_query has 1"),
        ((x3, [1, 1, 2]), {"is_gallery": [0, 0, 0]}, ConfigError, "is_gallery selects no row"),
        ((x3 * torch.nan, [1, 1, 2]), {}, DataError, "3 of 3 rows: 0, 1, 2"),
        ((x3, [1, 2, 3]), {}, DataError, "no positive pair among 3 pairs"),
        ((x3, [1, 1, 1]), {}, DataError, "no negative pair: all 3 pairs"),
        ((x3[:1], [1]), {}, DataError, "no positive pair among 0 pairs"),
        ((x3, [1, 1, 2]), {"item": [7, 7, 8]}, DataError, "no positive pair"),
        ((x3, [1, 1, 2]), {"is_query": [1, 0, 0], "is_gallery": [0, 0, 1]}, DataError, "no positive pair"),
        ((x3, [1, 1, 2]), {"fars": 0}, ConfigError, "far is 0"),
        ((x3, [1, 1, 2]), {"fars": (0.1, 1.5)}, ConfigError, "far is 1.5"),
        ((x3, [1, 1, 2]), {"fars": ["many"]}, ConfigError, "far is 'many'"),
        ((x3, [1, 1, 2]), {"fars": torch.nan}, ConfigError, "far is nan"),
        ((x3, [1, 1, 2]), {"fars": True}, ConfigError, "far is True"),
        ((x3, [1, 1, 2]), {"similarity": "cosin"}, ConfigError, "did you mean `cosine`"),
        ((x3, [1, 1, 2]), {"memory": "lots"}, ConfigError, "512MB"),
    ],
)
def test_what_cannot_be_verified_is_refused_in_words(arguments, options, error, message):
    with pytest.raises(error, match=message):
        verification(*arguments, **options)
    assert issubclass(error, KinfoldError)
