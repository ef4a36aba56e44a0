"""Shuffled decks of cards: everything comes once before anything comes twice."""

from collections.abc import Callable, Container, Sequence

import numpy as np


def anything(_card: int) -> bool:
    """Accept every card."""
    return True


class Deck:
    """Cards in random order; an empty deck is refilled with all cards and shuffled again.

    Args:
        cards: what is dealt, without repetition; not empty.
        rng: where the order comes from.

    Example:
        >>> deck = Deck([1, 2, 3], np.random.default_rng(0))
        >>> sorted(deck.draw(held=()) for _ in range(3))
        [1, 2, 3]
    """

    def __init__(self, cards: Sequence[int] | np.ndarray, rng: np.random.Generator):
        self.cards = cards
        self._rng = rng
        self._left: list[int] = []

    def draw(self, held: Container[int], wanted: Callable[[int], bool] = anything) -> int:
        """Deal the next card that is not held and is wanted; the cards passed over stay on top, in order.

        The caller makes sure that there is one: some card is neither held nor unwanted.
        """
        passed_over: list[int] = []
        while True:
            if not self._left:
                self._left = self._rng.permutation(self.cards).tolist()
            card = self._left.pop()
            if card not in held and wanted(card):
                break
            passed_over.append(card)
        self._left.extend(reversed(passed_over))
        return card

    def put_back(self, card: int) -> None:
        """Lay a card that was not used on top again."""
        self._left.append(card)
