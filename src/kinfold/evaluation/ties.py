"""Tie groups around a query's relevant items."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kinfold.evaluation.spaces import TIE_ULPS


def tie_tolerance(sim: Float[Tensor, "r k"], *, bounded: bool) -> Float[Tensor, " r"]:
    """Return the similarity difference up to which items tie, for each query: 4 machine epsilons.

    Rounding is relative to 1 for bounded similarities (cosine) and to the largest finite |similarity| of the query's relevant
    items otherwise.
    """
    eps = TIE_ULPS * torch.finfo(sim.dtype).eps
    if bounded:
        return torch.full_like(sim[:, 0], eps)
    return eps * sim.abs().masked_fill(sim.isinf(), 0).amax(dim=1)


def tie_starts(sim: Float[Tensor, "r k"], tolerance: Float[Tensor, " r"]) -> Bool[Tensor, "r k"]:
    """Return which relevant items open a tie group; each row is sorted, most alike first, and ends in -inf.

    The most alike item opens the first group. A group holds everything less than `tolerance` below the item that opened it; the first
    relevant item further down opens the next. Groups never overlap, so "ranked before" stays a proper order.
    """
    start = torch.zeros_like(sim, dtype=torch.bool)
    start[:, 0] = True
    start[:, 1:] = sim[:, 1:] < lowest_tied(sim[:, :-1], tolerance)
    position = torch.arange(sim.shape[1], device=sim.device).expand_as(sim)
    while True:
        opener = torch.where(start, position, 0).cummax(dim=1).values
        outside = sim < lowest_tied(sim.gather(1, opener), tolerance)
        first_outside = outside & ~torch.nn.functional.pad(outside, (1, 0))[:, :-1]
        if not first_outside.any():
            return start & sim.isfinite()
        start |= first_outside


def lowest_tied(opener: Float[Tensor, "r k"], tolerance: Float[Tensor, " r"]) -> Float[Tensor, "r k"]:
    """Return the smallest similarity in the group that an item opens."""
    return opener - tolerance[:, None]


def highest_tied(opener: Float[Tensor, "r k"], tolerance: Float[Tensor, " r"]) -> Float[Tensor, "r k"]:
    """Return the largest similarity in the group that an item opens (irrelevant items may lie a little above it)."""
    return opener + tolerance[:, None]


def group_openers(
    sim: Float[Tensor, "r k"], start: Bool[Tensor, "r k"]
) -> tuple[Float[Tensor, "r g"], Int[Tensor, "r k"], Int[Tensor, "r g"]]:
    """Return the openers' similarities (padded with +inf), each item's group, and the number of relevant items in each group."""
    group = start.long().cumsum(dim=1) - 1
    n_groups = max(1, int(group.max()) + 1)
    group = group.clamp_min(0)
    opener = torch.full((len(sim), n_groups), torch.inf, dtype=sim.dtype, device=sim.device)
    row, column = start.nonzero(as_tuple=True)
    opener[row, group[row, column]] = sim[row, column]
    size = torch.zeros((len(sim), n_groups), dtype=torch.long, device=sim.device)
    return opener, group, size.scatter_add_(1, group, sim.isfinite().long())
