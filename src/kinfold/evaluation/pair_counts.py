"""Pairs, tile by tile → exact counts by similarity."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.errors import DataError
from kinfold.evaluation.count_between import CountBetween
from kinfold.evaluation.pair_tiles import LabelledPairs
from kinfold.evaluation.precision import exact_products
from kinfold.evaluation.rates import Rates

BYTES_A_WAITING_PAIR = 64


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How many pairs there are at each similarity that a positive pair has, and between them.

    Attributes:
        sim: distinct similarities of the positive pairs, ascending.
        n_positive: positive pairs at exactly this similarity.
        n_tied: negative pairs at exactly this similarity.
        n_between: negative pairs above it and below the next.
        n_negative: all negative pairs.
    """

    sim: Float[Tensor, " t"]
    n_positive: Int[Tensor, " t"]
    n_tied: Int[Tensor, " t"]
    n_between: Int[Tensor, " t"]
    n_negative: int


def pair_counts(pairs: LabelledPairs) -> PairCounts:
    """Count all pairs: first the positive ones, which are few, then where the negative ones lie among them.

    Raises:
        DataError: no positive pair, or no negative one.
    """
    with exact_products(pairs.grid.query.x.device):
        sim, n_positive = _positive_similarities(pairs)
        n_negative = pairs.n_pairs - int(n_positive.sum())
        check_both_kinds(int(n_positive.sum()), n_negative)
        counter = CountBetween(sim, step=pairs.step, memory=pairs.memory)
        for tile, positive in pairs.tiles():
            counter.add(tile if positive is None else tile.masked_fill_(positive, -torch.inf))
        n_tied, n_between = counter.result()
    return PairCounts(sim.cpu(), n_positive.cpu(), n_tied.cpu(), n_between.cpu(), n_negative)


def rates_at(pairs: LabelledPairs, threshold: float) -> Rates:
    """Count the pairs with similarity >= threshold.

    Raises:
        DataError: no positive pair, or no negative one.
    """
    n_positive = n_true = n_accepted = 0
    with exact_products(pairs.grid.query.x.device):
        for sim, positive in pairs.tiles():
            accepted = sim >= _at_least(threshold, sim)
            n_accepted += int(accepted.count_nonzero())
            if positive is not None:
                n_positive += int((positive & (sim > -torch.inf)).count_nonzero())
                n_true += int((positive & accepted).count_nonzero())
    n_negative = pairs.n_pairs - n_positive
    check_both_kinds(n_positive, n_negative)
    return Rates(threshold, n_true, n_positive, n_accepted - n_true, n_negative)


def check_both_kinds(n_positive: int, n_negative: int) -> None:
    """Refuse pairs of one kind alone.

    Raises:
        DataError: no positive pair, or no negative one.
    """
    if not n_positive:
        raise DataError(
            f"no positive pair among {n_negative} pairs: no two items share a label (or not across query and gallery). "
            "Pass classes with two or more images."
        )
    if not n_negative:
        raise DataError(f"no negative pair: all {n_positive} pairs are of one class. Pass two or more classes.")


def _positive_similarities(pairs: LabelledPairs) -> tuple[Float[Tensor, " t"], Int[Tensor, " t"]]:
    """Return the distinct similarities of the positive pairs, ascending, and how many pairs have each."""
    x = pairs.grid.query.x
    sim = torch.empty(0, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32, device=x.device)
    count = torch.empty(0, dtype=torch.long, device=x.device)
    waiting, n_waiting = list[Tensor](), 0
    for tile, positive in pairs.tiles(alike_only=True):
        if positive is None:
            continue
        found = tile[positive & (tile > -torch.inf)]
        waiting.append(found)
        n_waiting += len(found)
        if n_waiting > max(len(sim), pairs.memory // BYTES_A_WAITING_PAIR):
            sim, count = _merged(sim, count, waiting)
            waiting, n_waiting = [], 0
    sim, count = _merged(sim, count, waiting)
    return sim + 0.0, count  # a distance of 0 is similarity 0, not -0


def _merged(sim: Tensor, count: Tensor, waiting: list[Tensor]) -> tuple[Tensor, Tensor]:
    values = torch.cat([sim, *waiting])
    n = torch.ones_like(values, dtype=torch.long)
    n[: len(count)] = count
    merged, place, _ = distinct(values)
    return merged, torch.zeros_like(merged, dtype=torch.long).scatter_add_(0, place, n)


def _at_least(threshold: float, sim: Tensor) -> Tensor:
    """Return the smallest number of a tile's type that is not below the threshold."""
    exact = torch.tensor(threshold, dtype=torch.float64)
    near = exact.to(sim.dtype)
    return torch.where(near.double() < exact, torch.nextafter(near, torch.full_like(near, torch.inf)), near).to(sim.device)
