"""Which queries a picture shows: chosen by a rule, never by hand, the same ones for every model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SAME, KIN, OTHER, NONE = 2, 1, 0, -1
"""What a neighbour is: of the query's class, of its super-category only, of neither; and no neighbour at all."""

MODELS = ("the first model", "the last")


@dataclass(frozen=True, eq=False)
class Chosen:
    """Queries for a picture.

    Attributes:
        place: of each among the queries, in the order of the picture.
        n_candidates: how many queries the rule could have taken.
        rule: in words.
    """

    place: np.ndarray
    n_candidates: int
    rule: str


def kinds_of(index: np.ndarray, label: np.ndarray, group: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return what each neighbour of each query is: `SAME`, `KIN`, `OTHER`, or `NONE` where a list has ended.

    Args:
        index: (n, k) rows of the neighbours, nearest first; negative after the end of a list.
        label: class code of every row.
        group: super-category code of every row.
        query: (n,) row of each query.

    Returns:
        (n, k) int64.

    Example:
        >>> label, group = np.array([0, 0, 1, 2]), np.array([0, 0, 0, 1])
        >>> kinds_of(np.array([[1, 2, 3, -1]]), label, group, np.array([0]))
        array([[ 2,  1,  0, -1]])
    """
    is_same = label[index] == label[query][:, None]
    is_kin = group[index] == group[query][:, None]
    return np.where(index < 0, NONE, np.where(is_same, SAME, np.where(is_kin, KIN, OTHER)))


def compared(index: Sequence[np.ndarray], n: int, *, names: Sequence[str] = MODELS) -> Chosen:
    """Choose queries that show how the models differ: whose neighbours differ between the first and the last of them.

    Args:
        index: (n_queries, k) rows of the neighbours for each model; of a single one, all queries are candidates.
        n: how many, evenly spaced among the candidates.
        names: of the models, for the rule.
    """
    if len(index) == 1:
        return _evenly(np.arange(len(index[0])), n, "evenly spaced over all queries, sorted by class and path")
    differs = (index[0] != index[-1]).any(axis=1)
    rule = f"evenly spaced over the queries whose nearest differ between {names[0]} and {names[-1]}, sorted by class and path"
    return _evenly(np.flatnonzero(differs), n, rule)


def failures(kinds: np.ndarray, n: int) -> Chosen:
    """Choose queries that a model fails: its nearest is not of their class.

    Args:
        kinds: (n_queries, k), see `kinds_of`.
        n: how many, evenly spaced among the candidates.
    """
    wrong = (kinds[:, 0] != SAME) & (kinds[:, 0] != NONE)
    return _evenly(np.flatnonzero(wrong), n, "evenly spaced over the queries whose first neighbour is of another class")


def turned(failing: np.ndarray, winning: np.ndarray, n: int, *, names: Sequence[str] = MODELS) -> Chosen:
    """Choose queries that one model fails altogether and another answers at once.

    `failing` has no image of the class among its first four (Recall@4 is 0), `winning` has one first (Recall@1 is 1). Asked both ways
    round, the two pictures, and the numbers of their candidates, say which way training has turned more.

    Args:
        failing: (n_queries, k) kinds of the model that fails.
        winning: the same of the model that succeeds.
        n: how many, evenly spaced among the candidates; fewer where there are not so many.
        names: of the two, for the rule.
    """
    missed = (failing[:, :4] != SAME).all(axis=1)
    rule = f"evenly spaced over the queries for which {names[0]} finds nothing of the class among the first four and {names[1]} finds it first"
    return _evenly(np.flatnonzero(missed & (winning[:, 0] == SAME)), n, rule)


def _evenly(candidates: np.ndarray, n: int, rule: str) -> Chosen:
    """Return n of the candidates, the middle of each of n equal stretches."""
    n = min(n, len(candidates))
    place = ((2 * np.arange(n) + 1) * len(candidates)) // (2 * max(n, 1))
    return Chosen(candidates[place], len(candidates), rule)
