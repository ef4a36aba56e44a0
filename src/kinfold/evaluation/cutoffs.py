"""The k of recall@k and of k nearest neighbours, checked."""

from collections.abc import Iterable
from operator import index
from typing import cast

from kinfold.errors import ConfigError


def cutoff(k: object, *, name: str = "k") -> int:
    """Return k as an integer of at least 1.

    Raises:
        ConfigError: k is a fraction, a bool, or below 1.

    Example:
        >>> cutoff(5)
        5
    """
    try:
        value = index(k)  # pyright: ignore[reportArgumentType]
    except TypeError:
        value = 0
    if isinstance(k, bool) or value < 1:
        raise ConfigError(f"{name} holds {k!r}, but must be an integer of at least 1: how many neighbours count.")
    return value


def cutoffs(ks: object) -> tuple[int, ...]:
    """Return several k, each checked, in the given order and without repetition; a single k is accepted."""
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        return (cutoff(ks, name="ks"),)
    return tuple(dict.fromkeys(cutoff(k, name="ks") for k in cast("Iterable[object]", ks)))
