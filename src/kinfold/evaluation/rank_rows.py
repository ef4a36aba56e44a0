"""Ranks of the relevant items of a few queries: find their similarities, group ties, count what lies above."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.evaluation.counting import CountAbove
from kinfold.evaluation.rank_record import Ranks
from kinfold.evaluation.ties import group_openers, highest_tied, lowest_tied, tie_starts, tie_tolerance
from kinfold.evaluation.tiles import QueryBlock
from kinfold.evaluation.toplist import LargestValues

GROUPS_COUNTED_DIRECTLY = 6
Reach = Literal["best", "top", "first", "all"]


@dataclass(frozen=True)
class RowsToRank:
    """Some queries of a block, and where their relevant items stand.

    Attributes:
        block: the block of queries.
        rows: which of its queries.
        start: gallery position of the first item of each query's class.
        size: how many items the class has.
        bounded: the similarity lies in [-1, 1].
        memory: bytes for buffered similarities.
    """

    block: QueryBlock
    rows: slice
    start: Int[Tensor, " r"]
    size: Int[Tensor, " r"]
    bounded: bool
    memory: int


def rank_rows(job: RowsToRank, n_candidates: Int[Tensor, " r"], *, reach: Reach, at_least: int) -> Ranks:
    """Return the ranks of the relevant items of some queries (see `Ranks`), as far down as `reach` says."""
    sim = relevant_similarities(job)
    n_relevant = sim.isfinite().sum(dim=1)
    tolerance = tie_tolerance(sim, bounded=job.bounded)
    opener, group, size = group_openers(sim, tie_starts(sim, tolerance))
    if reach == "best":
        opener, sim, group = opener[:, :1], sim[:, :1], group[:, :1]
    elif reach == "top":  # a group after `at_least` others starts behind the first `at_least` items
        sim = sim.masked_fill(group >= at_least, -torch.inf)
        width = max(1, int(sim.isfinite().sum(dim=1).max()))
        opener, sim, group = opener[:, :at_least], sim[:, :width], group[:, :width]
    high = highest_tied(opener, tolerance)
    low = torch.nextafter(lowest_tied(opener, tolerance), torch.full_like(opener, -torch.inf))
    counts = None
    limit = torch.full_like(n_relevant, at_least) if reach == "top" else n_relevant.clamp_min(at_least)
    if reach in ("top", "first") and opener.shape[1] > GROUPS_COUNTED_DIRECTLY:
        counts = count_near_the_top(job, high, low, limit)
    above, reached, found = counts or count_everywhere(job, high, low)
    if job.block.grid.exclude is not None:
        n_candidates = found.cpu()
    size = size[:, : opener.shape[1]]
    before = size.cumsum(dim=1) - size
    # A group starts where the one before ends. Numbers past the limit are lower bounds, which the second line puts in order.
    above[:, 1:] = torch.maximum(above[:, 1:], reached[:, :-1])
    above = (above - before).cummax(dim=1).values + before
    reached = torch.maximum(reached, above + size)
    row, column = sim.isfinite().nonzero(as_tuple=True)
    g = group[row, column]
    numbers = torch.stack([row, above[row, g], reached[row, g] - above[row, g], before[row, g], size[row, g]]).cpu()
    return Ranks(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], n_relevant.cpu(), n_candidates)


def relevant_similarities(job: RowsToRank) -> Float[Tensor, "r k"]:
    """Return each query's similarities to the items of its class, most alike first; excluded and missing ones are -inf."""
    block, width = job.block, max(1, int(job.size.max()))
    start, size = job.start.to(block.device)[:, None], job.size.to(block.device)[:, None]
    some = job.size > 0
    if not some.any():
        return torch.full((len(start), 1), -torch.inf, dtype=block.dtype, device=block.device)
    lowest, highest = int(job.start[some].min()), int(job.start[some].max())
    sim = torch.full((len(start), width), -torch.inf, dtype=block.dtype, device=block.device)
    for i in range(lowest // block.n_columns, (int((job.start + job.size)[some].max()) - 1) // block.n_columns + 1):
        tile = block.tile(i, keep=True)[job.rows]
        first = i * block.n_columns
        k = torch.arange(max(0, first - highest), min(width, first + tile.shape[1] - lowest), device=block.device)
        column = start + k - first
        inside = (k < size) & (column >= 0) & (column < tile.shape[1])
        part = sim[:, k]
        sim[:, k] = torch.where(inside, tile.gather(1, column.clamp(0, tile.shape[1] - 1)), part)
    return sim.sort(dim=1, descending=True).values


def count_everywhere(
    job: RowsToRank, high: Float[Tensor, "r g"], low: Float[Tensor, "r g"]
) -> tuple[Int[Tensor, "r g"], Int[Tensor, "r g"], Int[Tensor, " r"]]:
    """Count the whole gallery: items above each group, items down to its end, and all candidates."""
    everything = torch.full_like(high[:, :1], -torch.inf)
    has_rule = job.block.grid.exclude is not None
    counter = CountAbove(torch.cat([high, low, everything] if has_rule else [high, low], dim=1))
    for i in range(job.block.n_tiles):
        counter.add(job.block.tile(i)[job.rows])
    count = counter.result()
    n_groups = high.shape[1]
    return count[:, :n_groups].clone(), count[:, n_groups : 2 * n_groups].clone(), count[:, -1]


def count_near_the_top(
    job: RowsToRank, high: Float[Tensor, "r g"], low: Float[Tensor, "r g"], limit: Int[Tensor, " r"]
) -> tuple[Int[Tensor, "r g"], Int[Tensor, "r g"], Int[Tensor, " r"]] | None:
    """Count the first group over the whole gallery and the others among each query's largest similarities.

    Exact for every group that starts before the query's limit; the others are reported at or after it. Where a tie runs over the
    end of the list this cannot be told, and the answer is `None`.
    """
    block, k = job.block, int(limit.max()) + 1
    n_rows, item_bytes = job.rows.stop - job.rows.start, high.element_size()
    n_gallery = len(block.grid.gallery.order)
    if k > n_gallery // 4:
        return None
    columns = max(block.n_columns, min(n_gallery, job.memory // (n_rows * item_bytes) - k))
    everything = torch.full_like(high[:, :1], -torch.inf)
    counter = CountAbove(torch.cat([high[:, :1], low[:, :1], everything], dim=1))
    largest = LargestValues(k, high, shape=(n_rows, columns))
    for i in range(block.n_tiles):
        tile = block.tile(i)[job.rows]
        counter.add(tile)
        largest.add(tile)
    top = largest.result().sort(dim=1).values
    above, reached = (top.shape[1] - torch.searchsorted(top, edge.contiguous(), right=True) for edge in (high, low))
    count = counter.result()
    above[:, 0], reached[:, 0] = count[:, 0], count[:, 1]
    cut = (above < limit[:, None]) & (reached >= k) & high.isfinite()
    cut[:, 0] = False
    return None if cut.any() else (above, reached, count[:, 2])
