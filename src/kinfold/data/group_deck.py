"""A deck of classes that lie in groups: runs of classes of one group, every class equally often."""

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from kinfold.data.decks import Deck, anything


class GroupDeck:
    """Deals classes so that a batch gets a run of several classes of one group, then a run of another group, and so on.

    Within a group classes come from a shuffled deck: each once before any comes twice. The group whose run is due first comes next:

        due(g) = (classes of g dealt so far + u · run(g)) / size(g),  run(g) = min(run, size(g)),  u uniform in [0, 1) for each run

    so that at any time each group has been dealt in proportion to its number of classes, up to one run, and no batch knows
    beforehand which group comes. A group that the batch has already waits run(g) / size(g) longer: it comes twice in a batch only if
    it holds a large part of all classes.

    Two rules come before that, wherever there are such classes: the first two classes of a batch are of one group, and a class of
    another group comes third.

    Args:
        cards: numbers of the classes that are dealt.
        group: the group's number of each class, from 0; for all classes, dealt or not.
        run: how many classes of a group come together, ≥ 2.
        rng: where the order comes from.

    Example:
        >>> group = np.array([0, 0, 0, 1, 1, 1])
        >>> deck, held = GroupDeck(np.arange(6), group, run=2, rng=np.random.default_rng(0)), {}
        >>> for _ in range(4):
        ...     held[deck.draw(held)] = 1
        >>> group[list(held)]
        array([1, 1, 0, 0])
    """

    def __init__(self, cards: np.ndarray, group: np.ndarray, *, run: int, rng: np.random.Generator):
        self._cards, self._group, self._rng = cards, group.tolist(), rng
        self._size = np.bincount(group[cards], minlength=int(group.max()) + 1)
        self._sorted = cards[np.argsort(group[cards], kind="stable")]
        self._first = np.concatenate([[0], np.cumsum(self._size)])
        self._run = np.minimum(run, self._size)
        self._wait = self._run / np.maximum(self._size, 1)
        self._dealt = rng.random(len(self._size)) * self._run  # with the random part of the run to come
        self._random_part = self._dealt.copy()
        self._decks: dict[int, Deck] = {}

    def draw(self, held: Mapping[int, int], wanted: Callable[[int], bool] = anything) -> int:
        """Deal a class that is not held and is wanted; the caller makes sure that there is one."""
        n_held = Counter(self._group[c] for c in held)  # in the order in which groups joined the batch
        size = self._size if wanted is anything else self._size_of(held, n_held, wanted)
        g = self._running(n_held, size)
        if g is None:
            g = self._due(n_held, size)
            self._dealt[g] -= self._random_part[g]
            self._random_part[g] = self._rng.random() * self._run[g]
            self._dealt[g] += self._random_part[g]
        self._dealt[g] += 1
        return self._deck(g).draw(held, wanted)

    def put_back(self, card: int) -> None:
        """Take back a class that was dealt and not used: it comes first when its group comes, and the group comes sooner."""
        g = self._group[card]
        self._deck(g).put_back(card)
        self._dealt[g] -= 1

    def _size_of(self, held: Mapping[int, int], n_held: Mapping[int, int], wanted: Callable[[int], bool]) -> np.ndarray:
        """Return how many classes each group has that are held, or could be dealt."""
        groups = [self._group[c] for c in self._cards.tolist() if c not in held and wanted(c)]
        size = np.bincount(groups, minlength=len(self._size))
        for g, n in n_held.items():
            size[g] += n
        return size

    def _running(self, n_held: Mapping[int, int], size: np.ndarray) -> int | None:
        """Return the group whose run goes on, if any."""
        if len(n_held) == 1 and max(n_held.values()) > 1 and size.sum() > max(size[g] for g in n_held):
            return None  # two classes of one group: another group's turn
        return next((g for g, n in n_held.items() if n % self._run[g] and n < size[g]), None)

    def _due(self, n_held: Mapping[int, int], size: np.ndarray) -> int:
        """Return the group that begins a run."""
        left = size.copy()
        for g, n in n_held.items():
            left[g] -= n
        allowed = left > 0
        if not n_held and left.max() > 1:
            allowed = left > 1
        elif len(n_held) == 1 and allowed.sum() > 1:
            allowed[list(n_held)] = False
        due = np.full(len(left), np.inf)
        due[allowed] = self._dealt[allowed] / self._size[allowed]
        for g in n_held:
            due[g] += self._wait[g]
        return int(due.argmin())

    def _deck(self, g: int) -> Deck:
        if g not in self._decks:
            self._decks[g] = Deck(self._sorted[self._first[g] : self._first[g + 1]], self._rng)
        return self._decks[g]
