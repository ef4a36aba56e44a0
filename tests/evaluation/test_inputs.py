import numpy as np
import pytest
import torch

from kinfold.errors import DataError, ShapeError
from kinfold.evaluation.inputs import check_dimensions, embedding_of


@pytest.mark.parametrize(
    "value",
    [
        [[1, 2], [3, 4]],
        [[1.0, 2.0], [3.0, 4.0]],
        np.array([[1, 2], [3, 4]], dtype=np.uint16),
        np.array([[1, 2], [3, 4]], dtype=">f4"),
        np.array([[9, 9], [3, 4], [9, 9], [1, 2]], dtype=np.float32)[::-2],
        np.array([[1, 2], [3, 4]], dtype=np.longdouble),
        torch.tensor([[1, 2], [3, 4]]),
        torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True),
        torch.tensor([[1.0, 3.0], [2.0, 4.0]]).T,
        torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float16),
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to_sparse(),
        [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0], requires_grad=True)],
        (np.array([1.0, 2.0]), np.array([3.0, 4.0])),
    ],
)
def test_tensors_arrays_and_lists_are_accepted(value):
    x = embedding_of(value)
    assert x.tolist() == [[1, 2], [3, 4]]
    assert x.is_floating_point()
    assert not x.requires_grad


def test_float64_stays_and_read_only_arrays_are_left_alone():
    array = np.ones((2, 2))
    array.flags.writeable = False
    assert embedding_of(array).dtype == torch.float64


def test_rows_that_are_not_finite_are_counted_and_named():
    x = torch.zeros(70_000, 2)
    x[[3, 69_999], [0, 1]] = torch.tensor([torch.nan, torch.inf])
    with pytest.raises(DataError, match="2 of 70000 rows: 3, 69999"):
        embedding_of(x)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (torch.zeros(3), ShapeError),
        (torch.zeros(3, 2, 1), ShapeError),
        ([[1.0], [1.0, 2.0]], ShapeError),
        ([torch.zeros(2), torch.zeros(3)], ShapeError),
        (torch.zeros(0, 4), DataError),
        (torch.zeros(4, 0), DataError),
        ([], (ShapeError, DataError)),
        ([["a", "b"]], DataError),
        (torch.zeros(2, 2, dtype=torch.complex64), DataError),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(value, error):
    with pytest.raises(error):
        embedding_of(value)


def test_sides_of_different_dimension_are_refused():
    with pytest.raises(ShapeError, match="3 dimensions but the gallery has 4"):
        check_dimensions(torch.zeros(2, 3), torch.zeros(2, 4))
