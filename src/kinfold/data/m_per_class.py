"""The batch sampler of metric learning: m images of each of several classes."""

from collections.abc import Iterator

from kinfold.data.batch_sampler import BatchSampler
from kinfold.data.class_batches import ClassBatches, Labels
from kinfold.data.decks import Deck


class MPerClassSampler(BatchSampler):
    """Batches of m images of each of batch_size / m classes, dealt from shuffled decks.

    Classes come from one deck and the images of a class from a deck of their own: everything comes once before anything comes
    twice. Where every class has m images, the first ceil(n_classes / (batch_size / m)) batches of an epoch show every class. An
    epoch is n_rows // batch_size batches, all processes together. No image comes twice in a batch, and batches are always full.

    Every batch has at least 2 classes and at least 2 images of each (for m ≥ 2) wherever the data allow it:

    - a class with fewer than m images gives what it has, and a further class fills up;
    - with fewer classes than a batch has room for, each gives more than m images;
    - where batch_size is no multiple of m, the last class gives fewer, but at least 2;
    - classes with a single image (`n_singletons`) form no pair: they get their share of the places, and at least two classes
      with pairs stand beside them.

    Args:
        label: class of every row, of any integer or string type.
        m: images a class, ≥ 1; 1 gives batches of different classes.
        batch_size: images a batch (of one process), ≥ 4 (≥ 2 for m = 1), at most the number of rows.
        seed: ≥ 0; with the epoch it decides all batches.
        rank: number of this process.
        world_size: number of processes; each gets every `world_size`-th batch, all the same number.

    Raises:
        ConfigError: a setting is out of its range.
        DataError: `label` is not one value a row.

    Example:
        >>> label = [0, 0, 0, 1, 1, 1, 2, 2, 2]
        >>> sampler = MPerClassSampler(label, m=2, batch_size=4)
        >>> len(sampler), [sorted(label[row] for row in rows) for rows in sampler]
        (2, [[0, 0, 1, 1], [0, 0, 2, 2]])
    """

    def __init__(self, label: Labels, *, m: int, batch_size: int, seed: int = 0, rank: int = 0, world_size: int = 1):
        self._batches = ClassBatches(label, m=m, batch_size=batch_size)
        n_rows = self._batches.n_rows
        super().__init__(n_rows, n_rows // batch_size, seed=seed, rank=rank, world_size=world_size)
        self.m, self.batch_size = m, batch_size
        self.n_singletons = self._batches.n_singletons

    def _every_batch(self, epoch: int) -> Iterator[list[int]]:
        rng = self._rng(epoch)
        return self._batches.deal(Deck(self._batches.paired, rng), rng)
