"""Batch samplers that do not look at labels: rows in random order, and rows in table order."""

from collections.abc import Iterator

from kinfold.data.batch_sampler import BatchSampler
from kinfold.errors import ConfigError


class RandomBatchSampler(BatchSampler):
    """Every row at most once an epoch, in random order.

    Args:
        n: number of rows.
        batch_size: rows a batch (of one process).
        drop_last: leave out the last, smaller batch.
        seed: ≥ 0; with the epoch it decides the order.
        rank: number of this process.
        world_size: number of processes; each gets every `world_size`-th batch, all the same number.

    Example:
        >>> sampler = RandomBatchSampler(10, batch_size=4)
        >>> len(sampler), [len(rows) for rows in sampler]
        (2, [4, 4])
    """

    def __init__(self, n: int, *, batch_size: int, drop_last: bool = True, seed: int = 0, rank: int = 0, world_size: int = 1):
        super().__init__(n, _n_batches(n, batch_size, drop_last=drop_last), seed=seed, rank=rank, world_size=world_size)
        self.batch_size = batch_size

    def _every_batch(self, epoch: int) -> Iterator[list[int]]:
        order = self._rng(epoch).permutation(self.n_rows)
        for first in range(0, self.n_rows, self.batch_size):
            yield order[first : first + self.batch_size].tolist()


class SequentialBatchSampler(BatchSampler):
    """Every row once, in table order; the last batch may be smaller.

    Args:
        n: number of rows.
        batch_size: rows a batch.

    Example:
        >>> list(SequentialBatchSampler(5, batch_size=2))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, n: int, batch_size: int):
        super().__init__(n, _n_batches(n, batch_size, drop_last=False))
        self.batch_size = batch_size

    def _every_batch(self, epoch: int) -> Iterator[list[int]]:  # noqa: ARG002 — the order is the same in every epoch
        for first in range(0, self.n_rows, self.batch_size):
            yield list(range(first, min(first + self.batch_size, self.n_rows)))


def _n_batches(n: int, batch_size: int, *, drop_last: bool) -> int:
    if batch_size < 1:
        raise ConfigError(f"batch_size = {batch_size}: a batch needs at least one row")
    return n // batch_size if drop_last else -(-n // batch_size)
