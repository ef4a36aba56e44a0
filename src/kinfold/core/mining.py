"""Mining: (similarities, pairs) → the pairs worth training on, or triplets of them. Nothing here carries a gradient to `sim`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kinfold.core.reduce import at_least_float32, require_positive
from kinfold.records import Miner, Pairs, Triplets

Pick = Callable[[Tensor, Pairs], Triplets]
"""(sim, pairs) → triplets; reads `sim` as it is, so the triplet loss hands over the similarities after the margins."""


def multi_similarity_mining(sim: Float[Tensor, "n m"], pairs: Pairs, *, epsilon: float = 0.1) -> Pairs:
    """Keep the pairs that overlap with the other kind: negatives almost as alike as the least alike positive, and the reverse.

        negative (i, j) stays where s_ij > min over P_i of s_ip - epsilon
        positive (i, j) stays where s_ij < max over N_i of s_in + epsilon

    Both use the pairs as given, not each other's result, and `sim` without margins. An anchor that keeps no pair of one
    kind loses those of the other; it still counts as a row of the loss.

    Args:
        sim: similarity of row i to column j.
        pairs: all pairs.
        epsilon: slack, in units of similarity.

    Returns:
        The kept pairs, with the same margins and weights.

    Example:
        >>> pairs = Pairs(torch.tensor([[True, False, False]]), torch.tensor([[False, True, True]]))
        >>> multi_similarity_mining(torch.tensor([[0.5, 0.45, 0.1]]), pairs).negative
        tensor([[False,  True, False]])

    Reference:
        Wang et al., Multi-Similarity Loss with General Pair Weighting, CVPR 2019.
    """
    s = at_least_float32(sim.detach())
    least_alike = _row_extreme(s, pairs.positive, smallest=True)
    most_alike = _row_extreme(s, pairs.negative, smallest=False)
    negative = pairs.negative & (s > least_alike - epsilon)
    positive = pairs.positive & (s < most_alike + epsilon)
    has_both = positive.any(dim=1, keepdim=True) & negative.any(dim=1, keepdim=True)  # one side alone remains by rounding only
    return replace(pairs, positive=positive & has_both, negative=negative & has_both)


def easy_positive_mining(sim: Float[Tensor, "n m"], pairs: Pairs) -> Pairs:
    """Keep each anchor's most alike positive only, the first of equals; negatives stay.

    Example:
        >>> pairs = Pairs(torch.tensor([[True, True, False]]), torch.tensor([[False, False, True]]))
        >>> easy_positive_mining(torch.tensor([[0.2, 0.7, 0.9]]), pairs).positive
        tensor([[False,  True, False]])

    Reference:
        Xuan et al., Improved Embeddings with Easy Positive Triplet Mining, WACV 2020.
    """
    nearest = torch.zeros_like(pairs.positive)
    if sim.shape[1] > 0:
        score = at_least_float32(sim.detach()).masked_fill(~pairs.positive, -torch.inf)
        nearest.scatter_(1, score.argmax(dim=1, keepdim=True), True)
    return replace(pairs, positive=pairs.positive & nearest)


def all_triplets(sim: Float[Tensor, "n m"], pairs: Pairs) -> Triplets:
    """Return every (anchor, positive, negative).

    Example:
        >>> pairs = Pairs(torch.tensor([[True, False, False]]), torch.tensor([[False, True, True]]))
        >>> len(all_triplets(torch.tensor([[0.5, 0.4, 0.1]]), pairs).anchor)
        2
    """
    s = at_least_float32(sim.detach())
    anchor, positive = pairs.positive.nonzero(as_tuple=True)
    n_negatives = pairs.negative.sum(dim=1)[anchor]
    return _windows(pairs, _ordered_negatives(s, pairs.negative)[1], anchor, positive, torch.zeros_like(n_negatives), n_negatives)


def batch_hard(sim: Float[Tensor, "n m"], pairs: Pairs) -> Triplets:
    """Return one triplet per anchor: its least alike positive and its most alike negative.

    Reference:
        Hermans et al., In Defense of the Triplet Loss for Person Re-Identification, 2017.
    """
    has_both = pairs.positive.any(dim=1) & pairs.negative.any(dim=1)
    anchor = has_both.nonzero().squeeze(1)
    if sim.shape[1] == 0:
        return _triplets(pairs, anchor, anchor, anchor)
    s = at_least_float32(sim.detach())[anchor]
    positive = s.masked_fill(~pairs.positive[anchor], torch.inf).argmin(dim=1)
    negative = s.masked_fill(~pairs.negative[anchor], -torch.inf).argmax(dim=1)
    return _triplets(pairs, anchor, positive, negative)


def semi_hard(
    sim: Float[Tensor, "n m"], pairs: Pairs, *, margin: float = 0.1, select: Literal["all", "closest"] = "all"
) -> Triplets:
    """Return triplets whose negative is less alike than the positive, but not by much.

        all:      every negative with s_ap - margin < s_an < s_ap
        closest:  per (anchor, positive) the most alike negative with s_an < s_ap; where there is none, the least alike negative

    Args:
        sim: similarity of row i to column j.
        pairs: all pairs.
        margin: width of the window of `all`; keep it equal to the margin of the loss. `closest` does not use it.
        select: which of them.

    Returns:
        The triplets; none where no negative qualifies.

    Reference:
        Schroff et al., FaceNet, CVPR 2015 (`closest`); `all` is the habit of metric-learning libraries.
    """
    s = at_least_float32(sim.detach()).contiguous()
    anchor, positive = (pairs.positive & pairs.negative.any(dim=1, keepdim=True)).nonzero(as_tuple=True)
    ordered, column = _ordered_negatives(s, pairs.negative)
    n_below = torch.searchsorted(ordered, s)[anchor, positive]
    if select == "closest":
        start = (n_below - 1).clamp(min=0)
        return _windows(pairs, column, anchor, positive, start, start + 1)
    n_too_far = torch.searchsorted(ordered, s - margin, right=True)[anchor, positive]
    return _windows(pairs, column, anchor, positive, n_too_far.minimum(n_below), n_below)


def distance_weighted(
    sim: Float[Tensor, "n m"],
    pairs: Pairs,
    *,
    dim: int,
    nearest: float = 0.5,
    farthest: float | None = 1.4,
    generator: torch.Generator | None = None,
) -> Triplets:
    """Draw one negative per (anchor, positive), as often from every distance: probability proportional to 1 / q(D).

        q(D) ~ D^(dim - 2) (1 - D² / 4)^((dim - 3) / 2),    D = sqrt(2 - 2 s)

    is the density of distances between random points of the unit sphere, so `sim` must be a cosine. D is raised to `nearest`
    first; negatives farther than `farthest` are left out unless an anchor has no others: then all of its negatives are equally
    likely.

    Args:
        sim: cosine of row i and column j.
        pairs: all pairs.
        dim: size of the embedding, >= 2.
        nearest: lower bound of the distance, in (0, 2).
        farthest: upper bound of the distance; `None` means no bound.
        generator: source of the draw; `None` uses torch's own for the device of `sim`.

    Returns:
        One triplet per positive pair whose anchor has a negative.

    Reference:
        Wu et al., Sampling Matters in Deep Embedding Learning, ICCV 2017.
    """
    require_positive(nearest=nearest)
    kept = pairs.positive & pairs.negative.any(dim=1, keepdim=True)
    anchor, positive = kept.nonzero(as_tuple=True)
    if len(anchor) == 0:
        return _triplets(pairs, anchor, positive, positive)
    chance = _inverse_density(at_least_float32(sim.detach()), pairs.negative, dim, nearest, farthest)
    cumulative = chance.cumsum(dim=1)
    source = sim.device if generator is None else generator.device
    draw = torch.rand(kept.shape, generator=generator, device=source).to(cumulative) * cumulative[:, -1:]
    last = (chance > 0).int().cumsum(dim=1).argmax(dim=1, keepdim=True)  # rounding may lift a draw to the very end
    negative = torch.searchsorted(cumulative, draw, right=True).minimum(last)[anchor, positive]
    return _triplets(pairs, anchor, positive, negative)


def _inverse_density(
    s: Float[Tensor, "n m"], negative: Bool[Tensor, "n m"], dim: int, nearest: float, farthest: float | None
) -> Float[Tensor, "n m"]:
    """Return 1 / q(D) of each negative, relative to the row's largest; uniform in rows where all are too far."""
    dist = (2.0 - 2.0 * s).clamp(min=0.0).sqrt().clamp(min=nearest)
    inside = (1.0 - dist.square() / 4.0).clamp(min=torch.finfo(s.dtype).eps)  # D = 2 has density 0
    log_chance = (2.0 - dim) * dist.log() - (dim - 3.0) / 2.0 * inside.log()
    near_enough = negative if farthest is None else negative & (dist < farthest)
    log_chance = torch.where(near_enough.any(dim=1, keepdim=True), log_chance, 0.0)
    near_enough = torch.where(near_enough.any(dim=1, keepdim=True), near_enough, negative)
    log_chance = log_chance.masked_fill(~near_enough, -torch.inf)
    return (log_chance - _row_extreme(log_chance, near_enough, smallest=False)).exp().masked_fill(~near_enough, 0.0)


def _row_extreme(s: Float[Tensor, "n m"], keep: Bool[Tensor, "n m"], *, smallest: bool) -> Float[Tensor, "n 1"]:
    """Return the smallest or largest kept entry of each row; +inf or -inf where none is kept."""
    fill = torch.inf if smallest else -torch.inf
    if s.shape[1] == 0:
        return s.new_full((len(s), 1), fill)
    kept = s.masked_fill(~keep, fill)
    return kept.amin(dim=1, keepdim=True) if smallest else kept.amax(dim=1, keepdim=True)


def _ordered_negatives(s: Float[Tensor, "n m"], negative: Bool[Tensor, "n m"]) -> tuple[Tensor, Tensor]:
    """Sort each row's negatives upwards; everything else follows as +inf."""
    ordered, column = s.masked_fill(~negative, torch.inf).sort(dim=1, stable=True)
    return ordered.contiguous(), column


def _windows(
    pairs: Pairs,
    column: Int[Tensor, "n m"],
    anchor: Int[Tensor, " p"],
    positive: Int[Tensor, " p"],
    start: Int[Tensor, " p"],
    end: Int[Tensor, " p"],
) -> Triplets:
    """Join each positive pair with the negatives `start` to `end` of its row's upward order `column`: no (p, m) table is built."""
    length = end - start
    pair = torch.arange(len(anchor), device=anchor.device).repeat_interleave(length)
    within = torch.arange(len(pair), device=anchor.device) - (length.cumsum(0) - length)[pair]
    return _triplets(pairs, anchor[pair], positive[pair], column[anchor[pair], start[pair] + within])


def _triplets(pairs: Pairs, anchor: Int[Tensor, " t"], positive: Int[Tensor, " t"], negative: Int[Tensor, " t"]) -> Triplets:
    if pairs.weight is None:
        return Triplets(anchor=anchor, positive=positive, negative=negative)
    weight = at_least_float32(pairs.weight[anchor, positive]) * pairs.weight[anchor, negative]
    return Triplets(anchor=anchor, positive=positive, negative=negative, weight=weight)


MINERS: dict[str, Miner] = {
    "multi_similarity": multi_similarity_mining,
    "easy_positive": easy_positive_mining,
}

PICKS: dict[str, Callable[..., Triplets]] = {
    "all_triplets": all_triplets,
    "batch_hard": batch_hard,
    "semi_hard": semi_hard,
    "distance_weighted": distance_weighted,
}
