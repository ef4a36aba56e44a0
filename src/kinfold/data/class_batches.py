"""Batches of m images of each of several classes, whatever decides which classes come next."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from torch import Tensor

from kinfold.data.decks import Deck, anything
from kinfold.errors import ConfigError, DataError

log = logging.getLogger(__name__)

Labels = Sequence[int] | Sequence[str] | np.ndarray | Tensor
"""One value a row, of any integer or string type."""


class ClassDeck(Protocol):
    """Deals classes; `held` are those that the batch has already, in the order in which they came."""

    def draw(self, held: Mapping[int, int], wanted: Callable[[int], bool] = anything) -> int:
        """Deal a class that is not held and is wanted; the caller makes sure that there is one."""
        ...

    def put_back(self, card: int) -> None:
        """Take back a class that was dealt and not used."""
        ...


class ClassBatches:
    """Full batches of distinct images, m of each class where the class has them and the room allows it.

    Classes are numbered by their sorted labels. Those with a single image form no pair (for m ≥ 2): they get their share of the
    places, and the other classes come from a deck that the caller brings.

    Args:
        label: class of every row.
        m: images a class, ≥ 1.
        batch_size: images a batch, at most the number of rows.
        n_classes: how many classes with pairs a batch has at least, wherever there are so many.
        n_fixed: how many of the classes that are dealt first are never put back to make a batch go round.

    Attributes:
        size: images of each class.
        paired: numbers of the classes with at least two images (for m = 1: of all).
        n_singletons: number of classes with a single image.

    Raises:
        ConfigError: a setting is out of its range.
        DataError: `label` is not one value a row.
    """

    def __init__(self, label: Labels, *, m: int, batch_size: int, n_classes: int = 2, n_fixed: int = 0):
        array = np.asarray(label)
        if array.ndim != 1:
            raise DataError(f"label has shape {array.shape}: give one value a row")
        _check(array.size, m, batch_size, n_classes)
        self.n_rows, self.m, self.batch_size = array.size, m, batch_size
        self._n_classes, self._n_fixed = n_classes, n_fixed
        _, inverse, self.size = np.unique(array, return_inverse=True, return_counts=True)
        self._row = np.argsort(inverse, kind="stable")
        self._first = np.concatenate([[0], np.cumsum(self.size)])
        single = self.size == 1
        self.n_singletons = int(single.sum())
        # For m = 1 no batch is meant to hold pairs, so a lone image is as good as any class.
        self._single = np.flatnonzero(single & (m > 1))
        self.paired = np.flatnonzero(~single | (m == 1))
        if self.n_singletons:
            log.warning("%d of %d classes have a single image and form no pair", self.n_singletons, len(self.size))

    def first_rows(self) -> np.ndarray:
        """Return the first row of each class."""
        return self._row[self._first[:-1]]

    def deal(self, paired: ClassDeck, rng: np.random.Generator) -> Iterator[list[int]]:
        """Yield batches without end; classes with pairs come from the deck `paired`, all else is drawn from `rng`."""
        single, images, number = Deck(self._single, rng), dict[int, Deck](), 0
        while True:
            count = self._classes(paired, room=self.batch_size - self._n_single(number))
            for _ in range(self.batch_size - sum(count.values())):
                count[single.draw(held=count)] = 1
            yield [row for c, n in count.items() for row in self._images(c, n, images, rng)]
            number += 1

    def _n_single(self, number: int) -> int:
        """Return how many places of a batch go to classes with one image: each as often as other classes, but pairs come first."""
        if not len(self._single):
            return 0
        round_of_pairs = int(np.minimum(self.size[self.paired], self.m).sum())
        share = self.batch_size * len(self._single)
        total = len(self._single) + round_of_pairs
        fair = (number + 1) * share // total - number * share // total
        least = 1 if len(self.paired) == 1 else 0
        return min(max(fair, least), self.batch_size - 2 * min(self._n_classes, len(self.paired)), len(self._single))

    def _classes(self, deck: ClassDeck, *, room: int) -> dict[int, int]:
        """Choose classes with pairs, and how many images each gives, for `room` places (fewer if they have not so many)."""
        count: dict[int, int] = {}
        most = 1 if self.m == 1 else min(self.m, max(2, room // self._n_classes))
        while room and len(count) < len(self.paired):
            c = deck.draw(count)
            count[c] = min(most, int(self.size[c]), room)
            room -= count[c]
            if count[c] == 1 < self.m:
                self._pair_up(c, count, deck)
        _spread(room, count, self.size)
        return count

    def _pair_up(self, last: int, count: dict[int, int], deck: ClassDeck) -> None:
        """Give the one image of the last class a partner, or its place to another class."""
        others = [c for c in count if c != last]
        rich = next((c for c in others if count[c] > 2), None)
        spare = next((c for c in others if self.size[c] > count[c]), None)
        if rich is not None:
            count[rich] -= 1
            count[last] += 1
        elif spare is not None:
            count[spare] += 1
            _return(last, count, deck)
        elif self.size.max() > 2 and len(others) > self._n_fixed:
            # All others give both of their two images: the last two make room for three of one class.
            _return(last, count, deck)
            _return(others[-1], count, deck)
            count[deck.draw(count, lambda c: self.size[c] > 2)] = 3
        elif self.batch_size - sum(count.values()) < len(self._single):
            _return(last, count, deck)

    def _images(self, c: int, n: int, decks: dict[int, Deck], rng: np.random.Generator) -> list[int]:
        if c not in decks:
            decks[c] = Deck(self._row[self._first[c] : self._first[c + 1]], rng)
        held: dict[int, None] = {}
        for _ in range(n):
            held[decks[c].draw(held)] = None
        return list(held)


def _return(c: int, count: dict[int, int], deck: ClassDeck) -> None:
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


def _check(n_rows: int, m: int, batch_size: int, n_classes: int) -> None:
    if m < 1:
        raise ConfigError(f"m = {m}: a class gives at least one image to a batch")
    least = min(m, 2)
    if batch_size < n_classes * least:
        raise ConfigError(
            f"batch_size = {batch_size} cannot hold {n_classes} classes of {least} image(s): use {n_classes * least} or more"
        )
    if batch_size > n_rows:
        raise ConfigError(f"batch_size = {batch_size} is larger than the data ({n_rows} rows): lower it")
