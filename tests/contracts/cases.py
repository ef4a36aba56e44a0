"""Cases that the contract of every loss runs on, and how each loss counts weights."""

from dataclasses import dataclass
from functools import partial

import torch

from kinfold.core.mining import batch_hard, semi_hard
from kinfold.core.pairs import pairs_from_labels, without_self
from kinfold.losses import LOSSES
from kinfold.records import Pairs
from tests import oracles


@dataclass(frozen=True)
class Setting:
    """One loss with gentle hyperparameters, its oracle with the same, and which sides count weights in which way."""

    loss: object
    oracle: object
    averaged: tuple[str, ...] = ()  # the loss is affine in the weights of this side
    exponential: tuple[str, ...] = ()  # weight 2 is the pair twice


BOTH = ("positive", "negative")


def _setting(name, ours=None, theirs=None, averaged=(), exponential=()):
    ours = ours or {}
    loss, oracle = partial(LOSSES[name], **ours), partial(getattr(oracles, name), **(ours if theirs is None else theirs))
    return Setting(loss, oracle, averaged, exponential)


def _triplet(pick, picks, **rest):
    return _setting("triplet", {"margin": 0.3, "pick": pick, **rest}, {"gap": 0.3, "picks": picks, **rest}, averaged=BOTH)


SETTINGS = {
    "binomial_deviance": _setting("binomial_deviance", {"cost": 3.0}, averaged=BOTH),
    "contrastive": _setting("contrastive", averaged=BOTH),
    "contrastive-squared": _setting("contrastive", {"form": "squared", "negative_threshold": 0.1}, averaged=BOTH),
    "contrastive-active": _setting("contrastive", {"average": "active", "positive_threshold": 0.4}, averaged=BOTH),
    "contrastive-jump": _setting("contrastive", {"form": "jump", "average": "anchors"}, averaged=BOTH),
    "lifted_structure": _setting("lifted_structure", {"margin": 0.7}, {"gap": 0.7}, exponential=BOTH),
    "lifted_structure-pair": _setting(
        "lifted_structure", {"per": "pair"}, {"per": "pair"}, averaged=("positive",), exponential=()
    ),
    "multi_similarity": _setting("multi_similarity", {"beta": 4.0}, exponential=BOTH),
    "normalized_softmax": _setting("normalized_softmax", {"scale": 3.0}, averaged=("positive",), exponential=("negative",)),
    "proxy_anchor": _setting("proxy_anchor", {"scale": 3.0, "margin": 0.2}, {"scale": 3.0, "delta": 0.2}, exponential=BOTH),
    "proxy_nca": _setting("proxy_nca", {"scale": 3.0}, averaged=("positive",), exponential=("negative",)),
    "proxy_nca-positive-out": _setting(
        "proxy_nca", {"scale": 3.0, "positive_in_denominator": False}, averaged=("positive",), exponential=("negative",)
    ),
    "triplet": _setting("triplet", {"margin": 0.3}, {"gap": 0.3}, averaged=BOTH),
    "triplet-active": _setting("triplet", {"margin": 0.3, "average": "active"}, {"gap": 0.3, "average": "active"}, averaged=BOTH),
    "triplet-batch-hard-soft": _triplet(batch_hard, "batch_hard", form="soft"),
    "triplet-semi-hard": _setting(
        "triplet",
        {"margin": 0.3, "pick": partial(semi_hard, margin=0.3)},
        {"gap": 0.3, "picks": "semi_hard", "width": 0.3},
        averaged=BOTH,
    ),
    "triplet-closest": _triplet(partial(semi_hard, select="closest"), "closest"),
}


@dataclass(frozen=True)
class Case:
    """Similarities in [-1, 1] in float64 with margins in [-0.2, 0.2] and weights in [0.5, 1.5]."""

    sim: torch.Tensor
    pairs: Pairs

    def pairs_with(self, **changes) -> Pairs:
        fields = {"positive": self.pairs.positive, "negative": self.pairs.negative, "margin": self.pairs.margin}
        return Pairs(**{**fields, "weight": self.pairs.weight, **changes})


def _case(pairs: Pairs, seed: int) -> Case:
    generator = torch.Generator().manual_seed(seed)
    draw = partial(torch.rand, pairs.positive.shape, dtype=torch.float64, generator=generator)
    sim, margin, weight = 2 * draw() - 1, 0.4 * draw() - 0.2, 0.5 + draw()
    return Case(sim, Pairs(pairs.positive, pairs.negative, margin, weight))


def _cases():
    label, columns = torch.tensor([0, 0, 1, 1, 2, 0]), torch.tensor([1, 0, 0, 2, 4, 2, 1])
    square = without_self(pairs_from_labels(label, label))
    batch_against_memory = pairs_from_labels(torch.tensor([0, 1, 2, 3]), columns)  # row 3 and column 4 have no positive
    some = torch.rand(4, 7, generator=torch.Generator().manual_seed(9)) < 0.75
    sparse = Pairs(batch_against_memory.positive & some, batch_against_memory.negative & some)
    proxies = pairs_from_labels(label, torch.arange(4))
    named = {"square": square, "rectangular": batch_against_memory, "some ignored": sparse, "proxies": proxies}
    return {name: _case(pairs, seed) for seed, (name, pairs) in enumerate(named.items())}


CASES = _cases()


def oracle_value(oracle, sim: torch.Tensor, pairs: Pairs) -> float:
    """Run an oracle on plain lists."""
    full = torch.ones_like(sim)
    margin = full * pairs.margin
    weight = full if pairs.weight is None else pairs.weight
    return oracle(sim.tolist(), pairs.positive.tolist(), pairs.negative.tolist(), margin.tolist(), weight.tolist())
