"""Pairs from labels, and the few ways to change them; nothing here changes its argument."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.reduce import at_least_float32
from kinfold.errors import ShapeError
from kinfold.records import Pairs


def pairs_from_labels(rows: Int[Tensor, " n"], columns: Int[Tensor, " m"]) -> Pairs:
    """Make equal labels positive and different labels negative.

    Rows and columns may be the same items: then call `without_self`, or an item is its own positive.

    Args:
        rows: label of each row of the similarity matrix.
        columns: label of each column.

    Returns:
        Pairs without margins and weights.

    Example:
        >>> pairs_from_labels(torch.tensor([0, 1]), torch.tensor([0, 1, 1])).positive
        tensor([[ True, False, False],
                [False,  True,  True]])
    """
    positive = rows[:, None] == columns[None, :]
    return Pairs(positive=positive, negative=~positive)


def without_self(pairs: Pairs) -> Pairs:
    """Ignore the diagonal: rows and columns are the same items, in the same order.

    Raises:
        ShapeError: the matrix is not square.

    Example:
        >>> label = torch.tensor([0, 0, 1])
        >>> without_self(pairs_from_labels(label, label)).positive
        tensor([[False,  True, False],
                [ True, False, False],
                [False, False, False]])
    """
    n, m = pairs.positive.shape
    if n != m:
        raise ShapeError(
            f"pairs are ({n}, {m}), but only a square matrix has a diagonal of self-pairs; "
            "for other matrices `without_same_item(pairs, row_item, column_item)` removes an item's pairs with itself"
        )
    other = ~torch.eye(n, dtype=torch.bool, device=pairs.positive.device)
    return replace(pairs, positive=pairs.positive & other, negative=pairs.negative & other)


def without_same_item(pairs: Pairs, row_item: Int[Tensor, " n"], column_item: Int[Tensor, " m"]) -> Pairs:
    """Ignore the pairs of an item with itself, wherever they stand: self-matches are known by item, never by position.

    Args:
        pairs: (n, m) pairs.
        row_item: item (row of the data table) of each row.
        column_item: item of each column.

    Raises:
        ShapeError: the items do not fit the pairs.

    Example:
        >>> label = torch.tensor([0, 0])
        >>> pairs = pairs_from_labels(label, label)
        >>> without_same_item(pairs, torch.tensor([7, 8]), torch.tensor([8, 9])).positive
        tensor([[ True,  True],
                [False,  True]])
    """
    n, m = pairs.positive.shape
    if (len(row_item), len(column_item)) != (n, m):
        raise ShapeError(
            f"pairs are ({n}, {m}), but there are {len(row_item)} row items and {len(column_item)} column items: give one item per row and one per column"
        )
    other = row_item[:, None] != column_item[None, :]
    return replace(pairs, positive=pairs.positive & other, negative=pairs.negative & other)


def shift(pairs: Pairs, margin: Float[Tensor, "n m"] | float) -> Pairs:
    """Add `margin` to the pairs' margins: a positive one makes positives harder and negatives easier.

    Example:
        >>> pairs = pairs_from_labels(torch.tensor([0]), torch.tensor([0, 1]))
        >>> shift(shift(pairs, 0.25), 0.5).margin
        0.75
    """
    return replace(pairs, margin=pairs.margin + margin)


def reweight(pairs: Pairs, weight: Float[Tensor, "n m"]) -> Pairs:
    """Multiply the pairs' weights by `weight` (>= 0)."""
    return replace(pairs, weight=weight if pairs.weight is None else pairs.weight * weight)


def append_columns(left: Pairs, right: Pairs) -> Pairs:
    """Set two pairs with the same rows side by side: appended classes, a memory, or an anchor's own views.

    Raises:
        ShapeError: the numbers of rows differ.

    Example:
        >>> batch = pairs_from_labels(torch.tensor([0, 1]), torch.tensor([0, 1]))
        >>> memory = pairs_from_labels(torch.tensor([0, 1]), torch.tensor([1]))
        >>> append_columns(batch, memory).positive
        tensor([[ True, False, False],
                [False,  True,  True]])
    """
    if len(left.positive) != len(right.positive):
        raise ShapeError(
            f"pairs with {len(left.positive)} and {len(right.positive)} rows cannot stand side by side: both need the same rows"
        )
    has_one_margin = isinstance(left.margin, float) and isinstance(right.margin, float) and left.margin == right.margin
    has_weight = left.weight is not None or right.weight is not None
    return Pairs(
        positive=torch.cat([left.positive, right.positive], dim=1),
        negative=torch.cat([left.negative, right.negative], dim=1),
        margin=left.margin if has_one_margin else torch.cat([_filled(side, side.margin) for side in (left, right)], dim=1),
        weight=torch.cat([_filled(side, side.weight) for side in (left, right)], dim=1) if has_weight else None,
    )


def _filled(pairs: Pairs, value: Tensor | float | None) -> Tensor:
    """Return a margin or weight as a whole matrix; no weight is a weight of one."""
    if isinstance(value, Tensor):
        return value
    return torch.full(pairs.positive.shape, 1.0 if value is None else value, device=pairs.positive.device)


def shifted(sim: Float[Tensor, "n m"], pairs: Pairs) -> Float[Tensor, "n m"]:
    """Return the similarities after the margins, in at least float32: what every loss starts from.

    Raises:
        ShapeError: `sim` and `pairs` differ in size.
    """
    if sim.shape != pairs.positive.shape:
        raise ShapeError(
            f"`sim` is {tuple(sim.shape)} but `pairs` are {tuple(pairs.positive.shape)}: both need one row per anchor and one "
            "column per other item. `pairs_from_labels(row_labels, column_labels)` builds matching ones."
        )
    return at_least_float32(sim) - pairs.margin
