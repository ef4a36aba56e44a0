"""Similarities in tiles of one fixed shape, so that a value never depends on the memory budget."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.errors import DataError, ShapeError
from kinfold.evaluation.exclusion import Exclude, SameItem, SortedItems, check_mask
from kinfold.evaluation.spaces import Space
from kinfold.evaluation.typed import integers
from kinfold.records import Similarity

ROWS = 256
COLUMNS = 2048


class Rows:
    """Embedding rows in a given order, prepared for a similarity, in chunks of one fixed height.

    Chunks are always cut at the same places and padded to the same height (with a repeated row), whether they are prepared once
    or each time they are asked for; so a budget that is too small for a copy changes the time, not the values.
    """

    def __init__(
        self, x: Float[Tensor, "n d"], order: Int[Tensor, " n"], prepare: Callable[[Tensor], Tensor], *, height: int, keep: bool
    ):
        self.x, self.order, self.height = x, order.to(x.device), height
        self._prepare = prepare
        self._kept: Tensor | None = None
        if keep:
            chunk = self.chunk(0)
            kept = chunk.new_empty(self.n_chunks * height, chunk.shape[1])
            for i in range(self.n_chunks):
                kept[i * height : (i + 1) * height] = self.chunk(i)
            self._kept = kept

    @property
    def n_chunks(self) -> int:
        """How many chunks the rows fill, the last one padded."""
        return -(-len(self.order) // self.height)

    def chunk(self, i: int) -> Float[Tensor, "h d"]:
        """Return chunk i: `height` prepared rows."""
        first = i * self.height
        if self._kept is not None:
            return self._kept[first : first + self.height]
        order = self.order[first : first + self.height]
        padding = order[-1:].expand(self.height - len(order))
        return self._prepare(self.x[torch.cat([order, padding])])


@dataclass(frozen=True)
class Grid:
    """Queries times gallery, cut into tiles of one shape.

    Attributes:
        query: prepared query rows.
        gallery: prepared gallery rows.
        sim: similarity of two prepared blocks; `None` means their matrix product.
        items: excluded pairs by item.
        exclude: excluded pairs by any other rule, on original row numbers.
        n_rows: height of a tile.
        n_kept: how many tiles of one block of queries may stay in memory.
    """

    query: Rows
    gallery: Rows
    sim: Similarity | None
    items: SortedItems | None
    exclude: Exclude | None
    n_rows: int
    n_kept: int

    def blocks(self) -> Iterator["QueryBlock"]:
        """Yield the blocks of queries, one after the other; a block's tiles are valid until the next block."""
        device, dtype = self.gallery.x.device, self.gallery.chunk(0).dtype
        pool = [torch.empty(self.n_rows, self.gallery.height, dtype=dtype, device=device)]
        for first in range(0, len(self.query.order), self.n_rows):
            yield QueryBlock(self, first, pool)


class QueryBlock:
    """One block of queries and its tiles; excluded entries are -inf.

    Attributes:
        first: position of the first query.
        size: number of queries.
        n_tiles: number of tiles that cover the gallery.
    """

    def __init__(self, grid: Grid, first: int, pool: list[Tensor]):
        self.grid, self.first, self._pool = grid, first, pool
        self.size = min(grid.n_rows, len(grid.query.order) - first)
        self.n_tiles = grid.gallery.n_chunks
        self._kept: dict[int, Tensor] = {}
        chunk, inside = divmod(first, grid.query.height)
        self._rows = grid.query.chunk(chunk)[inside : inside + grid.n_rows]
        self._pairs = grid.items.pairs(first, first + self.size) if grid.items else None

    @property
    def device(self) -> torch.device:
        """Where the tiles are."""
        return self._pool[0].device

    @property
    def dtype(self) -> torch.dtype:
        """Number type of the similarities."""
        return self._pool[0].dtype

    @property
    def n_columns(self) -> int:
        """Width of a tile (the last one may be narrower)."""
        return self.grid.gallery.height

    def tile(self, i: int, *, keep: bool = False) -> Float[Tensor, "r c"]:
        """Return tile i; it is overwritten by the next call, unless it is kept."""
        if i in self._kept:
            return self._kept[i]
        keep = keep and len(self._kept) < self.grid.n_kept
        slot = len(self._kept) + 1 if keep else 0
        if slot == len(self._pool):
            self._pool.append(torch.empty_like(self._pool[0]))
        tile = self._hide(self._similarity(i, self._pool[slot]), i)
        if keep:
            self._kept[i] = tile
        return tile

    def _similarity(self, i: int, out: Tensor) -> Tensor:
        n_columns = min(self.n_columns, len(self.grid.gallery.order) - i * self.n_columns)
        columns = self.grid.gallery.chunk(i)
        if self.grid.sim is None:
            return torch.mm(self._rows, columns.T, out=out)[: self.size, :n_columns]
        sim = self.grid.sim(self._rows, columns)
        if sim.shape != out.shape:
            raise ShapeError(
                f"similarity returned {tuple(sim.shape)} for {len(self._rows)} and {len(columns)} rows, not one value a pair."
            )
        if not sim[: self.size, :n_columns].isfinite().all():
            raise DataError(
                "similarity returned values that are not finite for finite embeddings: give it a guard (zero rows, overflow)."
            )
        return out.copy_(sim)[: self.size, :n_columns]

    def _hide(self, tile: Tensor, i: int) -> Tensor:
        start = i * self.n_columns
        if self._pairs is not None:
            row, column = self._pairs
            low, high = integers(torch.searchsorted(column, torch.tensor([start, start + tile.shape[1]])))
            if low < high:
                tile[row[low:high].to(tile.device), (column[low:high] - start).to(tile.device)] = -torch.inf
        if self.grid.exclude is not None:
            rows = self.grid.query.order[self.first : self.first + self.size].cpu()
            columns = self.grid.gallery.order[start : start + tile.shape[1]].cpu()
            tile.masked_fill_(check_mask(self.grid.exclude(rows, columns), *tile.shape).to(tile.device), -torch.inf)
        return tile


@dataclass(frozen=True)
class Sides:
    """The two sides of a search before they are cut: embeddings, and the order in which they are visited."""

    query: Float[Tensor, "n d"]
    gallery: Float[Tensor, "m d"]
    query_order: Int[Tensor, " n"]
    gallery_order: Int[Tensor, " m"]


def grid_of(sides: Sides, space: Space, exclude: Exclude | None, memory: int) -> Grid:
    """Cut a search into tiles: prepared copies take at most half of the budget, kept tiles half of what then remains."""
    gallery, query = sides.gallery, sides.query
    height = min(COLUMNS, -(-len(gallery) // 64) * 64)
    n_rows = min(ROWS, -(-len(query) // 16) * 16)
    shared = (
        query is gallery and space.query is space.gallery and sides.query_order is sides.gallery_order and height % n_rows == 0
    )
    item_bytes = 8 if torch.float64 in (query.dtype, gallery.dtype) else 4
    left, bytes_a_row = memory // 2, (gallery.shape[1] + 1) * item_bytes
    keep = len(gallery) * bytes_a_row <= left
    left -= len(gallery) * bytes_a_row * keep
    gallery_rows = Rows(gallery, sides.gallery_order, space.gallery, height=height, keep=keep)
    query_rows = gallery_rows if shared else Rows(query, sides.query_order, space.query, height=n_rows, keep=False)
    items = exclude.in_order(sides.query_order, sides.gallery_order) if isinstance(exclude, SameItem) else None
    n_kept = max(0, (memory // 2 + left) // 2 // (n_rows * height * item_bytes))
    return Grid(query_rows, gallery_rows, space.sim, items, None if items else exclude, n_rows, n_kept)
