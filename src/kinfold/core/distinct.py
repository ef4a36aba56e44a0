"""Distinct values of a tensor, typed as the strict parts need it."""

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor


def distinct(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct values in ascending order, the place of each entry among them, and how often each occurs.

    Example:
        >>> distinct(torch.tensor([7, 3, 7]))
        (tensor([3, 7]), tensor([1, 0, 1]), tensor([1, 2]))
    """
    unique = cast("Callable[..., tuple[Tensor, Tensor, Tensor]]", torch.unique)  # pyright: ignore[reportUnknownMemberType]
    return unique(x, return_inverse=True, return_counts=True)
