"""Typed doors to the parts of torch and scikit-learn that have no types."""

import importlib
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def integers(x: Tensor) -> list[int]:
    """Return a tensor of integers as a list."""
    return cast("Callable[[], list[int]]", x.tolist)()  # pyright: ignore[reportUnknownMemberType]


def tensor_of(array: npt.NDArray[Any]) -> Tensor:
    """Return a tensor over an array's memory."""
    return cast("Callable[[object], Tensor]", torch.from_numpy)(array)  # pyright: ignore[reportUnknownMemberType]


def array_of(x: Tensor) -> npt.NDArray[Any]:
    """Return an array over a CPU tensor's memory."""
    return cast("Callable[[], npt.NDArray[Any]]", x.numpy)()


def sklearn_function(module: str, name: str) -> Callable[..., Any]:
    """Return a function or class of scikit-learn, which is imported only here: it is heavy, and wanted only on request."""
    return getattr(importlib.import_module(f"sklearn.{module}"), name)


def real_array(value: object) -> npt.NDArray[np.generic]:
    """Return anything as an array, as numpy reads it."""
    return np.asarray(value)
