"""Which gallery rows a query may not find: the same item, or any rule."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from kinfold.errors import ShapeError

Exclude = Callable[[Tensor, Tensor], Tensor]
"""(query rows, gallery rows) → mask, True where the query may not find the gallery row."""


class SameItem:
    """Exclude gallery rows that show the same item as the query; costs nothing per pair, unlike a mask.

    Args:
        query: item of each query row, as codes or any integers.
        gallery: item of each gallery row, in the same numbering.

    Example:
        >>> same = SameItem(torch.tensor([7, 8]), torch.tensor([8, 7, 7]))
        >>> same(torch.tensor([0, 1]), torch.tensor([0, 1, 2]))
        tensor([[False,  True,  True],
                [ True, False, False]])
    """

    def __init__(self, query: Int[Tensor, " n"], gallery: Int[Tensor, " m"]):
        self.query, self.gallery = query, gallery

    def __call__(self, rows: Int[Tensor, " a"], columns: Int[Tensor, " b"]) -> Bool[Tensor, "a b"]:
        """Return the mask for some query rows and gallery rows."""
        return self.query[rows][:, None] == self.gallery[columns]

    def in_order(self, query_order: Int[Tensor, " n"], gallery_order: Int[Tensor, " m"]) -> "SortedItems":
        """Return the same rule for queries and galleries that are visited in another order."""
        return SortedItems(self.query[query_order], self.gallery[gallery_order])


class SortedItems:
    """Gallery positions grouped by item, so that those of one query are found without looking at the others."""

    def __init__(self, query: Int[Tensor, " n"], gallery: Int[Tensor, " m"]):
        items, self._position = gallery.sort(stable=True)
        self._start = torch.searchsorted(items, query)
        self.n_excluded = torch.searchsorted(items, query, right=True) - self._start

    def pairs(self, first: int, last: int) -> tuple[Int[Tensor, " t"], Int[Tensor, " t"]]:
        """Return the excluded (query position - first, gallery position) of queries first … last - 1, by gallery position."""
        count = self.n_excluded[first:last]
        row = torch.repeat_interleave(torch.arange(last - first), count)
        within = torch.arange(len(row)) - (count.cumsum(0) - count)[row]
        column, order = self._position[self._start[first:last][row] + within].sort(stable=True)
        return row[order], column


def check_mask(mask: Tensor, n_rows: int, n_columns: int) -> Tensor:
    """Return what a user's exclusion rule answered, if it is a mask of the right shape.

    Raises:
        ShapeError: it is not.
    """
    if mask.dtype != torch.bool or mask.shape != (n_rows, n_columns):
        raise ShapeError(
            f"exclude returned {tuple(mask.shape)} of {mask.dtype} for {n_rows} query rows and {n_columns} gallery rows: "
            f"return a bool tensor with one entry for each pair."
        )
    return mask
