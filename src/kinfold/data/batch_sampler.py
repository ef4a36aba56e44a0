"""What every batch sampler does: numbered epochs, resuming inside one, equal shares for several processes."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice

import numpy as np

from kinfold.errors import ConfigError


class BatchSampler(ABC):
    """Lists of row numbers, one list a batch; pass it to a `DataLoader` as `batch_sampler=`, not as `sampler=`.

    The batches of an epoch are one sequence that depends on (seed, epoch) only. Process `rank` of `world_size` gets the batches
    rank, rank + world_size, rank + 2 world_size, …; the last few are left out where they do not go round, so all processes get
    the same number. No epoch needs an earlier one to be replayed.

    Args:
        n_rows: number of rows of the table.
        n_batches: batches of an epoch, all processes together.
        seed: ≥ 0; the same on all processes.
        rank: number of this process, from 0.
        world_size: number of processes.

    Raises:
        ConfigError: the seed is negative, the rank is not below `world_size`, or some process would get no batch.
    """

    def __init__(self, n_rows: int, n_batches: int, *, seed: int = 0, rank: int = 0, world_size: int = 1):
        if seed < 0:
            raise ConfigError(f"seed = {seed} is negative: use 0 or more")
        if not 0 <= rank < world_size:
            raise ConfigError(f"rank = {rank} of world_size = {world_size}: ranks count from 0 to world_size - 1")
        if n_batches < world_size:
            raise ConfigError(
                f"{n_rows} rows give {n_batches} batches for {world_size} process(es), and each needs one: "
                "lower batch_size or the number of processes"
            )
        self.n_rows = n_rows
        self.seed, self.rank, self.world_size = seed, rank, world_size
        self._length = n_batches // world_size
        self._epoch = 0

    def __len__(self) -> int:
        """Return the number of batches that this process gets in an epoch."""
        return self._length

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of the current epoch, which `set_epoch` chooses (0 at first)."""
        return self.epoch(self._epoch)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that plain iteration yields."""
        self._epoch = epoch

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[list[int]]:
        """Yield this process's batches of one epoch from batch `start` on, equal to those of an epoch begun at 0.

        Raises:
            ConfigError: `start` is not within 0 to `len(self)`, or the epoch is negative.
        """
        if not 0 <= start <= self._length:
            raise ConfigError(f"start = {start} is not a batch of this epoch: it has {self._length}")
        if epoch < 0:
            raise ConfigError(f"epoch = {epoch} is negative: epochs count from 0")
        first, last = self.rank + start * self.world_size, self._length * self.world_size
        return islice(self._every_batch(epoch), first, last, self.world_size)

    def n_never_drawn(self, epoch: int = 0) -> int:
        """Count the rows that no process shows in an epoch; walks through that epoch once."""
        shown = np.zeros(self.n_rows, dtype=bool)
        for rows in islice(self._every_batch(epoch), self._length * self.world_size):
            shown[rows] = True
        return int(self.n_rows - shown.sum())

    def _rng(self, epoch: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, epoch])

    @abstractmethod
    def _every_batch(self, epoch: int) -> Iterator[list[int]]:
        """Yield the batches of all processes, in order; may go on past the epoch's end."""
