"""The largest values of each row, tile after tile."""

import torch
from jaxtyping import Float
from torch import Tensor


class LargestValues:
    """Keeps the k largest values of each row; the values do not depend on how many columns are buffered.

    Args:
        k: how many values.
        like: a tensor whose dtype and device to use.
        shape: (rows, columns buffered between two selections).
    """

    def __init__(self, k: int, like: Tensor, *, shape: tuple[int, int]):
        self.k = k
        self._buffer = torch.empty(shape[0], k + shape[1], dtype=like.dtype, device=like.device)
        self._filled = 0

    def add(self, tile: Float[Tensor, "r c"]) -> None:
        """Add the columns of one more tile."""
        if self._filled + tile.shape[1] > self._buffer.shape[1]:
            self._select()
        self._buffer[:, self._filled : self._filled + tile.shape[1]] = tile
        self._filled += tile.shape[1]

    def result(self) -> Float[Tensor, "r k"]:
        """Return the largest values in no particular order; fewer than k where there are no more."""
        self._select()
        return self._buffer[:, : self._filled]

    def _select(self) -> None:
        if self._filled > self.k:
            self._buffer[:, : self.k] = self._buffer[:, : self._filled].topk(self.k, dim=1, sorted=False).values
            self._filled = self.k
