"""Published losses on a batch given by a closed formula, with values computed outside this library, and against a library."""

from dataclasses import replace
from functools import partial
from math import cos, log, sin

import pytest
import torch
from pytorch_metric_learning import distances, losses, miners, reducers

from kinfold.core.mining import batch_hard, multi_similarity_mining, semi_hard
from kinfold.core.pairs import pairs_from_labels, reweight, without_self
from kinfold.core.reduce import normalise
from kinfold.core.similarity import cosine, negative_euclidean, negative_squared_euclidean
from kinfold.losses import LOSSES
from kinfold.records import Pairs

LABEL = torch.tensor([0, 0, 1, 1, 2, 2])
EMBEDDING = torch.tensor([[sin(1 + 0.7 * i + 1.3 * j) for j in range(3)] for i in range(6)], dtype=torch.float64)
PROXIES = torch.tensor([[cos(0.5 + 0.9 * c + 1.1 * j) for j in range(3)] for c in range(3)], dtype=torch.float64)
UNIT = normalise(EMBEDDING)
BATCH = without_self(pairs_from_labels(LABEL, LABEL))
TO_PROXIES = pairs_from_labels(LABEL, torch.arange(3))


def loss_of(name, sim, pairs, **settings) -> float:
    return LOSSES[name](sim, pairs, **settings).item()


def in_batch(name, similarity=cosine, x=EMBEDDING, pairs=BATCH, **settings) -> float:
    return loss_of(name, similarity(x, x), pairs, **settings)


def to_proxies(name, similarity=cosine, x=EMBEDDING, proxies=PROXIES, **settings) -> float:
    return loss_of(name, similarity(x, proxies), TO_PROXIES, **settings)


def mined(epsilon=0.1) -> Pairs:
    return multi_similarity_mining(cosine(EMBEDDING, EMBEDDING), BATCH, epsilon=epsilon)


euclidean = partial(in_batch, similarity=negative_euclidean, x=UNIT)
hadsell = {"form": "squared", "positive_threshold": 0.0, "negative_threshold": -1.0}
over_all_30_pairs = reweight(BATCH, 0.2 * BATCH.positive.double() + 0.8 * BATCH.negative.double())

GOLDEN = {
    "Proxy-NCA, T 1/9, positive excluded": (
        -8.55370723597847,
        lambda: to_proxies("proxy_nca", scale=18.0, positive_in_denominator=False),
    ),
    "Proxy-NCA, on squared distances": (
        -8.55370723597847,
        lambda: to_proxies(
            "proxy_nca",
            negative_squared_euclidean,
            UNIT,
            normalise(PROXIES),
            scale=9.0,
            positive_in_denominator=False,
        ),
    ),
    "ProxyNCA++, T 1/9": (0.14510704654302345, lambda: to_proxies("proxy_nca", scale=18.0)),
    "PS-style Proxy-NCA, scale 12 (the default)": (0.1488740128766861, lambda: to_proxies("proxy_nca")),
    "Proxy Anchor 32 / 0.1": (26.774703910021806, lambda: to_proxies("proxy_anchor")),
    "Norm-SoftMax s 23": (0.14794166503530182, lambda: to_proxies("normalized_softmax", scale=23.0)),
    "Norm-SoftMax T 0.05 (the default)": (0.14578961956914535, lambda: to_proxies("normalized_softmax")),
    "contrastive hinge m_n 0.5, non-zero means": (
        0.6649723325348745,
        lambda: euclidean("contrastive", positive_threshold=0.0, negative_threshold=-0.5, average="active"),
    ),
    "contrastive hinge m_n 1, non-zero means": (
        0.9636547910592594,
        lambda: euclidean("contrastive", positive_threshold=0.0, negative_threshold=-1.0, average="active"),
    ),
    "contrastive squared m 1, mean over the 30 ordered pairs": (
        0.10345282772606683,
        lambda: euclidean("contrastive", pairs=over_all_30_pairs, **hadsell),
    ),
    "contrastive cosine 0.5 (XBM style)": (0.7182164471733885, lambda: in_batch("contrastive", form="jump", average="anchors")),
    "triplet L2 m 0.1, all 24, mean of non-zero": (0.1947678099360919, lambda: euclidean("triplet", average="active")),
    "triplet squared L2 m 0.2, all, mean": (
        0.02650050399679835,
        lambda: in_batch("triplet", negative_squared_euclidean, UNIT, margin=0.2),
    ),
    "semi-hard triplets at m 0.1: none": (0.0, lambda: euclidean("triplet", pick=semi_hard)),
    "batch-hard L2 m 0.1, mean over anchors": (0.06492260331203063, lambda: euclidean("triplet", pick=batch_hard)),
    "lifted original, alpha 1, raw X": (
        2.5501110649166843,
        lambda: in_batch("lifted_structure", negative_euclidean, per="pair"),
    ),
    "generalised lifted, m 1, raw X": (1.5340148613400537, lambda: in_batch("lifted_structure", negative_euclidean)),
    "MS a2 b50 l0.5, no mining": (0.3896398179752146, lambda: in_batch("multi_similarity")),
    "MS a2 b50 l0.5, mining": (0.1893502881981335, lambda: in_batch("multi_similarity", pairs=mined())),
    "MS a2 b40 l0.5, mining": (0.1893502969724555, lambda: in_batch("multi_similarity", pairs=mined(), beta=40.0)),
    "MS a2 b50 l1.0, mining": (0.15539706471264855, lambda: in_batch("multi_similarity", pairs=mined(), threshold=1.0)),
    "binomial deviance 2/0.5/25": (2.4877731381121326, lambda: in_batch("binomial_deviance")),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_golden_batch_gives_the_golden_value(name):
    expected, value = GOLDEN[name]
    assert value() == pytest.approx(expected, rel=1e-9, abs=0.0)


def test_mining_leaves_two_anchors_of_the_golden_batch():
    assert mined().positive.any(dim=1).sum() == 2


def library(loss, x=EMBEDDING, indices=None) -> float:
    return loss(x, LABEL, indices).item()


def with_proxies(loss):
    loss = loss.double()
    if isinstance(loss, losses.NormalizedSoftmaxLoss):
        loss.W = torch.nn.Parameter(PROXIES.T.clone())
    else:
        loss.proxies = torch.nn.Parameter(PROXIES.clone())
    return loss


L2 = distances.LpDistance
RAW = L2(normalize_embeddings=False)
SQUARED = L2(power=2)
LIBRARY = {
    "contrastive": (
        lambda: library(losses.ContrastiveLoss(distance=L2())),
        lambda: euclidean("contrastive", positive_threshold=0.0, negative_threshold=-1.0, average="active"),
    ),
    "contrastive on cosine": (
        lambda: library(losses.ContrastiveLoss(0.9, 0.3, distance=distances.CosineSimilarity())),
        lambda: in_batch("contrastive", positive_threshold=0.9, negative_threshold=0.3, average="active"),
    ),
    "triplet": (
        lambda: library(losses.TripletMarginLoss(0.2, distance=SQUARED)),
        lambda: in_batch("triplet", negative_squared_euclidean, UNIT, margin=0.2, average="active"),
    ),
    "soft triplet": (
        lambda: library(losses.TripletMarginLoss(0.0, smooth_loss=True, distance=L2(), reducer=reducers.MeanReducer())),
        lambda: euclidean("triplet", margin=0.0, form="soft"),
    ),
    "lifted structure": (
        lambda: library(losses.LiftedStructureLoss(distance=RAW)),
        lambda: in_batch("lifted_structure", negative_euclidean, per="pair"),
    ),
    "generalised lifted structure": (
        lambda: library(losses.GeneralizedLiftedStructureLoss(distance=RAW)),
        lambda: in_batch("lifted_structure", negative_euclidean),
    ),
    "multi-similarity": (lambda: library(losses.MultiSimilarityLoss(2, 50, 0.5)), lambda: in_batch("multi_similarity")),
    "Proxy Anchor": (
        lambda: library(with_proxies(losses.ProxyAnchorLoss(3, 3))),
        lambda: to_proxies("proxy_anchor"),
    ),
    "Proxy-NCA": (
        lambda: library(with_proxies(losses.ProxyNCALoss(3, 3, softmax_scale=12.0))),
        lambda: to_proxies("proxy_nca", scale=24.0),
    ),
    "normalised softmax": (
        lambda: library(with_proxies(losses.NormalizedSoftmaxLoss(3, 3, temperature=0.05))),
        lambda: to_proxies("normalized_softmax"),
    ),
}


@pytest.mark.parametrize("name", LIBRARY)
def test_pytorch_metric_learning_gives_the_same_value(name):
    theirs, ours = LIBRARY[name]
    assert ours() == pytest.approx(theirs(), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
def test_multi_similarity_mining_keeps_the_librarys_pairs_of_anchors_with_both_sides(epsilon):
    x, label = torch.randn(24, 4, dtype=torch.float64), torch.arange(24) % 6
    sim, pairs = cosine(x, x), without_self(pairs_from_labels(label, label))
    anchor, positive, other, negative = miners.MultiSimilarityMiner(epsilon)(x, label)
    kept = {side: torch.zeros_like(pairs.positive) for side in ("positive", "negative")}
    kept["positive"][anchor, positive] = True
    kept["negative"][other, negative] = True
    has_both = kept["positive"].any(1, keepdim=True) & kept["negative"].any(1, keepdim=True)
    ours = multi_similarity_mining(sim, pairs, epsilon=epsilon)
    assert torch.equal(ours.positive, kept["positive"] & has_both)
    assert torch.equal(ours.negative, kept["negative"] & has_both)


def test_semi_hard_triplets_are_the_librarys():
    x, label = torch.randn(24, 4, dtype=torch.float64), torch.arange(24) % 6
    theirs = torch.stack(miners.TripletMarginMiner(0.2, "semihard", distance=L2())(x, label), dim=1)
    sim = negative_euclidean(normalise(x), normalise(x))
    ours = semi_hard(sim, without_self(pairs_from_labels(label, label)), margin=0.2)
    assert sorted(theirs.tolist()) == sorted(torch.stack([ours.anchor, ours.positive, ours.negative], dim=1).tolist())
    assert len(ours.anchor) > 20


def one_row(positive: float, *negative: float) -> tuple[torch.Tensor, Pairs]:
    sim = torch.tensor([[positive, *negative]], dtype=torch.float64)
    is_positive = torch.tensor([[True, *[False] * len(negative)]])
    return sim, Pairs(is_positive, ~is_positive)


def test_proxy_nca_of_equal_distances_is_the_logarithm_of_the_number_of_proxies_it_compares():
    equal = one_row(0.3, 0.3, 0.3, 0.3)
    assert loss_of("proxy_nca", *equal) == pytest.approx(log(4))
    assert loss_of("proxy_nca", *equal, positive_in_denominator=False) == pytest.approx(log(3))


def test_multi_similarity_of_one_pair_each_at_the_threshold_is_two_logarithms():
    assert loss_of("multi_similarity", *one_row(0.5, 0.5)) == pytest.approx(log(2) / 2 + log(2) / 50)


@pytest.mark.parametrize("similarities", [(0.2, 0.4), (0.9, 0.3)])
def test_generalised_lifted_structure_of_one_pair_each_is_the_triplet_hinge(similarities):
    lifted = loss_of("lifted_structure", *one_row(*similarities), margin=0.5)
    assert lifted == pytest.approx(loss_of("triplet", *one_row(*similarities), margin=0.5))


def test_normalised_softmax_is_proxy_nca_with_the_positive_in_the_denominator():
    assert to_proxies("normalized_softmax", scale=7.0) == pytest.approx(to_proxies("proxy_nca", scale=7.0), rel=1e-13)


def test_adaptive_margins_of_a_hierarchy_are_margins_of_the_pairs():
    """The forms of three losses with a threshold of its own for every pair of classes, written out as loops."""
    sim, gamma = cosine(EMBEDDING, EMBEDDING), 0.5
    within, between = (
        torch.tensor([0.05, 0.1, 0.15]).double(),
        torch.tensor([[0, 0.1, 0.2], [0.1, 0, 0.05], [0.2, 0.05, 0]]).double(),
    )
    margin = torch.where(BATCH.positive, within[LABEL][:, None], -between[LABEL][:, LABEL])
    pairs = replace(BATCH, margin=margin)
    lifted, hinge = 0.0, []
    for i in range(6):
        near = sum((gamma + within[LABEL[i]] - sim[i, j]).exp() for j in range(6) if BATCH.positive[i, j])
        far = sum((sim[i, j] + between[LABEL[i], LABEL[j]]).exp() for j in range(6) if BATCH.negative[i, j])
        lifted += max(0.0, (near.log() + far.log()).item()) / 6
        for p in BATCH.positive[i].nonzero():
            for k in BATCH.negative[i].nonzero():
                gap = gamma + within[LABEL[i]] + between[LABEL[i], LABEL[k]]
                hinge.append(max(0.0, (sim[i, k] - sim[i, p] + gap).item()))
    assert loss_of("lifted_structure", sim, pairs, margin=gamma) == pytest.approx(lifted, rel=1e-12)
    assert loss_of("triplet", sim, pairs, margin=gamma) == pytest.approx(sum(hinge) / len(hinge), rel=1e-12)
