"""How many entries of each row lie above given thresholds, tile after tile."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

BUCKETS_FROM = 96


class CountAbove:
    """Counts, for each row, the entries strictly above each of its thresholds; both ways of counting give the same integers.

    With few thresholds each is compared with the whole row; with many, every entry is put into its bucket between them.

    Args:
        threshold: thresholds of each row, in any order.
    """

    def __init__(self, threshold: Float[Tensor, "r t"]):
        self._in_buckets = threshold.shape[1] >= BUCKETS_FROM
        self.threshold = threshold
        width = threshold.shape[1] + self._in_buckets
        self._count = torch.zeros(len(threshold), width, dtype=torch.long, device=threshold.device)
        if self._in_buckets:
            self._sorted, self._order = threshold.sort(dim=1)
        self._above: Tensor | None = None

    def add(self, tile: Float[Tensor, "r c"]) -> None:
        """Count the entries of one more tile."""
        if self._in_buckets:
            bucket = torch.searchsorted(self._sorted, tile.contiguous())
            self._count.scatter_add_(1, bucket, torch.ones_like(bucket))
            return
        # 0 and 1 as floats: comparing into bool and summing bool is several times slower; sums of ones are exact up to 2**24.
        if self._above is None or self._above.shape != tile.shape:
            self._above = torch.empty(tile.shape, dtype=tile.dtype, device=tile.device)
        for j in range(self.threshold.shape[1]):
            torch.gt(tile, self.threshold[:, j : j + 1], out=self._above)
            self._count[:, j] += self._above.sum(dim=1).long()

    def result(self) -> Int[Tensor, "r t"]:
        """Return the counts, in the order of the thresholds."""
        if not self._in_buckets:
            return self._count
        above = self._count.flip(1).cumsum(dim=1).flip(1)[:, 1:]
        return torch.empty_like(above).scatter_(1, self._order, above)
