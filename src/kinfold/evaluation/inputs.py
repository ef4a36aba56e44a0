"""Embeddings as users hold them (tensors, arrays, lists) → checked tensors."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from kinfold.errors import DataError, ShapeError
from kinfold.evaluation.typed import integers, real_array, tensor_of

ROWS_A_CHECK = 4_096


def embedding_of(value: object, *, name: str = "embedding") -> Float[Tensor, "n d"]:
    """Return embeddings as a finite floating tensor of two dimensions, without a copy where possible.

    Half precision stays as it is here and is widened block by block later; whole numbers become floats that hold them.

    Raises:
        ShapeError: not one row of numbers for each item.
        DataError: no rows, no columns, no numbers, or rows that are not finite.
    """
    x = (value if isinstance(value, Tensor) else _tensor(value, name)).detach()
    if x.ndim != 2:
        raise ShapeError(f"{name} has shape {tuple(x.shape)}, but must be two-dimensional: one row for each item.")
    if 0 in x.shape:
        raise DataError(f"{name} has shape {tuple(x.shape)}: there is nothing to score.")
    if x.is_complex():
        raise DataError(f"{name} is {x.dtype}: embeddings are real numbers.")
    if x.layout != torch.strided:
        x = x.to_dense()
    if not x.is_floating_point():
        x = x.to(torch.float32 if x.element_size() <= 2 else torch.float64)
    _check_finite(x, name)
    return x.cpu() if x.device.type == "mps" else x


def check_dimensions(query: Float[Tensor, "n d"], gallery: Float[Tensor, "m e"]) -> None:
    """Raise unless both sides have the same dimension."""
    if query.shape[1] != gallery.shape[1]:
        raise ShapeError(
            f"queries have {query.shape[1]} dimensions but the gallery has {gallery.shape[1]}: embed both with one model."
        )


def _tensor(value: object, name: str) -> Tensor:
    if isinstance(value, Sequence):
        rows = [row for row in cast("Sequence[object]", value) if isinstance(row, Tensor)]
        if rows and len({row.shape for row in rows}) == 1:
            return torch.stack(rows)
    try:
        array = real_array(cast("object", value))
    except ValueError as error:
        raise ShapeError(f"{name} is no table of numbers with rows of one length: {error}.") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} holds {array.dtype}, but must hold numbers.")
    odd_float = array.dtype.kind == "f" and array.dtype.itemsize not in (2, 4, 8)
    if odd_float or (array.dtype.kind == "u" and array.dtype.itemsize > 1):
        array = array.astype(np.float64)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return tensor_of(array if array.flags.writeable else array.copy())


def _check_finite(x: Float[Tensor, "n d"], name: str) -> None:
    steps = range(0, len(x), ROWS_A_CHECK)
    finite = torch.cat([torch.isfinite(x[i : i + ROWS_A_CHECK]).all(dim=1) for i in steps])
    wrong = integers((~finite).nonzero().flatten())
    if wrong:
        shown = ", ".join(map(str, wrong[:10])) + (", …" if len(wrong) > 10 else "")
        raise DataError(f"{name} is not finite in {len(wrong)} of {len(x)} rows: {shown}. Find out why before scoring.")
