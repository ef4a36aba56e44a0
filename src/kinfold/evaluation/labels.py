"""Labels and item ids of any kind → dense codes, exactly."""

from collections.abc import Iterable
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int
from torch import Tensor

from kinfold.errors import DataError, ShapeError
from kinfold.evaluation.typed import array_of, real_array, tensor_of

Label = str | bytes | int


def codes_of(*columns: object, what: str = "label") -> tuple[list[Int[Tensor, " n"]], list[Label]]:
    """Map columns of labels together to 0, 1, 2, …: equal labels, and only those, get equal codes.

    Args:
        columns: one or more sequences, arrays or tensors of strings and integers of any size; floats are accepted where they
            are whole numbers that their type holds exactly. `1` and `"1"` differ; `1`, `1.0` and `True` are the same.
        what: what the messages call a column.

    Returns:
        One tensor of codes for each column, and the labels in the order of their codes (numbers first, each kind sorted).

    Raises:
        DataError: a label is missing (None, NaN), a fraction, a float too large to be exact, or of another type.
        ShapeError: a column is not one-dimensional.

    Example:
        >>> codes_of(["cat", "dog"], ["dog", "owl"])
        ([tensor([0, 1]), tensor([1, 2])], ['cat', 'dog', 'owl'])
    """
    arrays = [_array(column, what) for column in columns]
    if all(array.dtype.kind in "bi" or (array.dtype.kind == "u" and array.dtype.itemsize < 8) for array in arrays):
        return _number([array.astype(np.int64) for array in arrays])
    if all(array.dtype.kind == "U" for array in arrays):
        return _number(arrays)
    return _number_objects([[_exact(value, what) for value in array.tolist()] for array in arrays])


def _array(column: object, what: str) -> npt.NDArray[np.generic]:
    """Return a column as an array of integers, of strings, or of Python objects; never through a lossy type."""
    digits = None
    if isinstance(column, Tensor):
        column = column.detach().cpu()
        digits = 8 if column.dtype == torch.bfloat16 else None
        array: npt.NDArray[np.generic] = array_of(column.float() if column.dtype == torch.bfloat16 else column)
    elif isinstance(column, np.ndarray) or hasattr(column, "to_numpy"):
        array = real_array(cast("object", column))
    elif isinstance(column, Iterable) and not isinstance(column, str | bytes):
        array = np.fromiter(cast("Iterable[object]", column), dtype=np.object_)
    else:
        raise ShapeError(f"{what} is {type(column).__name__}, but must be a sequence with one {what} for each row.")
    if array.ndim != 1:
        raise ShapeError(f"{what} has shape {array.shape}, but must be one-dimensional, with one {what} for each row.")
    if isinstance(array.dtype, np.dtypes.Float16DType | np.dtypes.Float32DType | np.dtypes.Float64DType):
        _check_floats(array, what, exact=2 ** (digits or int(np.finfo(array.dtype).nmant) + 1))
    return array


def _check_floats(array: npt.NDArray[np.generic], what: str, *, exact: int) -> None:
    values = array.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) <= exact)))
    if len(wrong):
        raise _inexact(what, float(values[wrong[0]]), int(wrong[0]))


def _exact(value: object, what: str) -> Label:
    """Return one label as a string, bytes or Python integer."""
    if isinstance(value, np.generic) or (isinstance(value, Tensor) and value.ndim == 0):
        value = cast("object", value.item())
    if isinstance(value, bool | int):
        return int(value)
    if isinstance(value, str | bytes):
        return value
    if isinstance(value, float):
        if not value.is_integer() or abs(value) > 2**53:
            raise _inexact(what, value, None)
        return int(value)
    raise DataError(f"{what} {value!r} is {type(value).__name__}: use strings or integers, and fill in or drop what is missing.")


def _inexact(what: str, value: float, row: int | None) -> DataError:
    place = "" if row is None else f" in row {row}"
    return DataError(
        f"{what}{place} is the float {value!r}, which is missing, not whole, or too large for its type to be exact: "
        f"pass {what}s as integers or strings."
    )


def _number(arrays: list[npt.NDArray[np.generic]]) -> tuple[list[Tensor], list[Label]]:
    names, codes = np.unique(np.concatenate(arrays), return_inverse=True)
    bounds = np.cumsum([len(array) for array in arrays])[:-1]
    return [tensor_of(part.astype(np.int64)) for part in np.split(codes, bounds)], names.tolist()


def _number_objects(columns: list[list[Label]]) -> tuple[list[Tensor], list[Label]]:
    distinct = {value for column in columns for value in column}
    numbers = sorted(value for value in distinct if isinstance(value, int))
    texts = sorted(value for value in distinct if isinstance(value, str))
    names: list[Label] = [*numbers, *texts, *sorted(value for value in distinct if isinstance(value, bytes))]
    code = {name: i for i, name in enumerate(names)}
    return [torch.tensor([code[value] for value in column], dtype=torch.long) for column in columns], names
