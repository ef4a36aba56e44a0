"""Blocks of queries → ranks of their relevant items."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.evaluation.exclusion import Exclude
from kinfold.evaluation.rank_record import Ranks
from kinfold.evaluation.rank_rows import Reach, RowsToRank, rank_rows
from kinfold.evaluation.spaces import space_of
from kinfold.evaluation.tiles import Grid, QueryBlock, Sides, grid_of
from kinfold.records import Similarity

BYTES_A_RELEVANT_ITEM = 128


@dataclass(frozen=True)
class Depth:
    """How far down the relevant items of a query must be ranked.

    Attributes:
        reach: `best`: the most alike relevant item only; `top`: those among the first `at_least` items; `first`: those among the
            first n_relevant or `at_least` items; `all`: every relevant item. Others may be missing, or reported anywhere after them.
        at_least: see `top` and `first`.
    """

    reach: Reach
    at_least: int = 0


@dataclass(frozen=True)
class Search:
    """Queries and gallery sorted by class, so that a query's relevant items stand side by side.

    Attributes:
        grid: the tiles.
        query_order: original row of each query position.
        start: gallery position of the first item of the query's class.
        size: gallery items of the query's class (excluded ones included).
        bounded: the similarity lies in [-1, 1].
        memory: budget in bytes.
    """

    grid: Grid
    query_order: Int[Tensor, " n"]
    start: Int[Tensor, " n"]
    size: Int[Tensor, " n"]
    bounded: bool
    memory: int

    def ranks(self, depth: Depth) -> Iterator[Ranks]:
        """Yield the ranks of a few queries at a time, in the order of `query_order`."""
        for block in self.grid.blocks():
            first, last = block.first, block.first + block.size
            step = self._rows_at_once(int(self.size[first:last].max()))
            for low in range(0, block.size, step):
                yield self._ranks_of(block, slice(low, min(low + step, block.size)), depth)

    def _ranks_of(self, block: QueryBlock, rows: slice, depth: Depth) -> Ranks:
        position = slice(block.first + rows.start, block.first + rows.stop)
        items, n_gallery = self.grid.items, len(self.grid.gallery.order)
        size = self.size[position]
        n_candidates = torch.full_like(size, n_gallery) - (items.n_excluded[position] if items else 0)
        if self.grid.exclude is None and not size.any():
            nothing = size[:0]
            return Ranks(nothing, nothing, nothing, nothing, nothing, size, n_candidates)
        job = RowsToRank(block, rows, self.start[position], size, self.bounded, self.memory // 4)
        return rank_rows(job, n_candidates, reach=depth.reach, at_least=depth.at_least)

    def _rows_at_once(self, n_relevant: int) -> int:
        return max(1, min(self.grid.n_rows, self.memory // 4 // (BYTES_A_RELEVANT_ITEM * max(1, n_relevant))))


def search_of(
    sides: tuple[Float[Tensor, "n d"], Float[Tensor, "m d"]],
    codes: tuple[Int[Tensor, " n"], Int[Tensor, " m"]],
    *,
    similarity: str | Similarity,
    exclude: Exclude | None,
    memory: int,
) -> Search:
    """Sort both sides by (class size, class) and cut them into tiles.

    Sorting by size first gives the queries of a block nearly equal numbers of relevant items.
    """
    query, gallery = sides
    code, gallery_code = codes
    n_codes = int(max(code.max(), gallery_code.max())) + 1
    size = torch.bincount(gallery_code, minlength=n_codes)
    by_size = size.argsort(stable=True)
    rank = torch.empty_like(by_size).scatter_(0, by_size, torch.arange(n_codes))
    gallery_order = rank[gallery_code].argsort(stable=True)
    query_order = gallery_order if code is gallery_code else rank[code].argsort(stable=True)
    start = torch.empty_like(size).scatter_(0, by_size, size[by_size].cumsum(0) - size[by_size])
    space = space_of(similarity, query, gallery)
    grid = grid_of(Sides(query, gallery.to(query.device), query_order, gallery_order), space, exclude, memory)
    sorted_code = code[query_order]
    return Search(grid, query_order, start[sorted_code], size[sorted_code], space.bounded, memory)
