"""The batch sampler of metric learning: m images of each of several classes."""

import logging
from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from kinfold.data.batch_sampler import BatchSampler
from kinfold.data.decks import Deck
from kinfold.errors import ConfigError, DataError

log = logging.getLogger(__name__)


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

    def __init__(
        self,
        label: Sequence[int] | Sequence[str] | np.ndarray | Tensor,
        *,
        m: int,
        batch_size: int,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        array = np.asarray(label)
        if array.ndim != 1:
            raise DataError(f"label has shape {array.shape}: give one value a row")
        _check(array.size, m, batch_size)
        super().__init__(array.size, array.size // batch_size, seed=seed, rank=rank, world_size=world_size)
        self.m, self.batch_size = m, batch_size
        _, inverse, self._size = np.unique(array, return_inverse=True, return_counts=True)
        self._row = np.argsort(inverse, kind="stable")
        self._first = np.concatenate([[0], np.cumsum(self._size)])
        single = self._size == 1
        self.n_singletons = int(single.sum())
        # For m = 1 no batch is meant to hold pairs, so a lone image is as good as any class.
        self._single = np.flatnonzero(single & (m > 1))
        self._paired = np.flatnonzero(~single | (m == 1))
        if self.n_singletons:
            log.warning("%d of %d classes have a single image and form no pair", self.n_singletons, len(self._size))

    def _every_batch(self, epoch: int) -> Iterator[list[int]]:
        rng = self._rng(epoch)
        paired, single = Deck(self._paired, rng), Deck(self._single, rng)
        images: dict[int, Deck] = {}
        for number in range(self._length * self.world_size):
            count = self._classes(paired, room=self.batch_size - self._n_single(number))
            for _ in range(self.batch_size - sum(count.values())):
                count[single.draw(held=count)] = 1
            yield [row for c, n in count.items() for row in self._images(c, n, images, rng)]

    def _n_single(self, number: int) -> int:
        """Return how many places of a batch go to classes with one image: each as often as other classes, but pairs come first."""
        if not len(self._single):
            return 0
        round_of_pairs = int(np.minimum(self._size[self._paired], self.m).sum())
        share = self.batch_size * len(self._single)
        total = len(self._single) + round_of_pairs
        fair = (number + 1) * share // total - number * share // total
        least = 1 if len(self._paired) == 1 else 0
        return min(max(fair, least), self.batch_size - 2 * min(2, len(self._paired)), len(self._single))

    def _classes(self, deck: Deck, *, room: int) -> dict[int, int]:
        """Choose classes with pairs, and how many images each gives, for `room` places (fewer if they have not so many)."""
        count: dict[int, int] = {}
        most = 1 if self.m == 1 else min(self.m, max(2, room // 2))
        while room and len(count) < len(self._paired):
            c = deck.draw(held=count)
            count[c] = min(most, int(self._size[c]), room)
            room -= count[c]
            if count[c] == 1 < self.m:
                self._pair_up(c, count, deck)
        _spread(room, count, self._size)
        return count

    def _pair_up(self, last: int, count: dict[int, int], deck: Deck) -> None:
        """Give the one image of the last class a partner, or its place to another class."""
        others = [c for c in count if c != last]
        rich = next((c for c in others if count[c] > 2), None)
        spare = next((c for c in others if self._size[c] > count[c]), None)
        if rich is not None:
            count[rich] -= 1
            count[last] += 1
        elif spare is not None:
            count[spare] += 1
            _return(last, count, deck)
        elif self._size.max() > 2:
            # All others give both of their two images: the last two make room for three of one class.
            _return(last, count, deck)
            _return(others[-1], count, deck)
            count[deck.draw(held=count, wanted=lambda c: self._size[c] > 2)] = 3
        elif self.batch_size - sum(count.values()) < len(self._single):
            _return(last, count, deck)

    def _images(self, c: int, n: int, decks: dict[int, Deck], rng: np.random.Generator) -> list[int]:
        if c not in decks:
            decks[c] = Deck(self._row[self._first[c] : self._first[c + 1]], rng)
        held: dict[int, None] = {}
        for _ in range(n):
            held[decks[c].draw(held)] = None
        return list(held)


def _return(c: int, count: dict[int, int], deck: Deck) -> None:
    del count[c]
    deck.put_back(c)


def _spread(room: int, count: dict[int, int], size: np.ndarray) -> None:
    """Fill the places that are left with further images of the chosen classes, one of each in turn."""
    spare = [c for c in count if size[c] > count[c]]
    while room and spare:
        for c in spare[:room]:
            count[c] += 1
            room -= 1
        spare = [c for c in spare if size[c] > count[c]]


def _check(n_rows: int, m: int, batch_size: int) -> None:
    if m < 1:
        raise ConfigError(f"m = {m}: a class gives at least one image to a batch")
    least = 2 if m == 1 else 4
    if batch_size < least:
        raise ConfigError(f"batch_size = {batch_size} cannot hold 2 classes of {least // 2} image(s): use {least} or more")
    if batch_size > n_rows:
        raise ConfigError(f"batch_size = {batch_size} is larger than the data ({n_rows} rows): lower it")
