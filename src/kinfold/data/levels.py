"""Groupings of a table's rows: dense codes, and whether one grouping nests in another."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

Name = str | int
"""A class or group as the table gives it: text, or a whole number of any size."""


def sorted_names(values: Sequence[Name]) -> tuple[Name, ...]:
    """Return the distinct names in order: whole numbers by value first, then text by character."""
    return tuple(sorted(set(values), key=lambda value: (isinstance(value, str), value)))


def dense_codes(values: Sequence[Name]) -> np.ndarray:
    """Return each value's place among the sorted distinct values, as int64.

    Example:
        >>> dense_codes(["b", 10, 9, "b"])
        array([2, 1, 0, 2])
    """
    place = {name: code for code, name in enumerate(sorted_names(values))}
    return np.fromiter((place[value] for value in values), dtype=np.int64, count=len(values))


def nests(fine: np.ndarray, coarse: np.ndarray) -> bool:
    """Return whether every group of `fine` lies in one group of `coarse` (codes per row, as `dense_codes` gives them)."""
    if fine.size == 0:
        return True
    pairs = np.unique(fine * (int(coarse.max()) + 1) + coarse)
    return len(pairs) == len(np.unique(fine))


def one_chain(codes: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Return the groupings' names from fine to coarse if each nests in the next, otherwise an empty tuple.

    Example:
        >>> one_chain({"order": np.array([0, 0, 0]), "family": np.array([0, 0, 1])})
        ('family', 'order')
    """
    names = sorted(codes, key=lambda name: -len(np.unique(codes[name])))  # stable: equal groupings keep their order
    is_chain = all(nests(codes[fine], codes[coarse]) for fine, coarse in pairwise(names))
    return tuple(names) if is_chain else ()
