import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.errors import DataError, ShapeError
from kinfold.evaluation.labels import codes_of

labels = st.one_of(st.integers(-(2**70), 2**70), st.text(max_size=3), st.integers(0, 3))


@given(st.lists(labels), st.lists(labels))
def test_codes_are_equal_exactly_where_labels_are(left, right):
    (a, b), names = codes_of(left, right)
    given_labels, codes = left + right, a.tolist() + b.tolist()
    assert [names[c] for c in codes] == given_labels
    assert sorted(set(codes)) == list(range(len(set(given_labels))))


@pytest.mark.parametrize("big", [2**24, 2**53, 2**63, 2**64, 10**30])
def test_neighbouring_large_integers_stay_apart(big):
    (codes,), names = codes_of([big, big + 1, big])
    assert codes.tolist() == [0, 1, 0]
    assert names == [big, big + 1]


def test_large_integers_stay_apart_in_arrays_and_across_signed_and_unsigned():
    unsigned = np.array([2**53, 2**53 + 1, 2**63 + 1], dtype=np.uint64)
    signed = torch.tensor([2**53 + 1, 2**53 + 2])
    (a, b), names = codes_of(unsigned, signed)
    assert [names[c] for c in a.tolist() + b.tolist()] == [2**53, 2**53 + 1, 2**63 + 1, 2**53 + 1, 2**53 + 2]


@pytest.mark.parametrize(
    "column",
    [
        ["b", "a", "b"],
        ("b", "a", "b"),
        np.array(["b", "a", "b"]),
        np.array(["b", "a", "b"], dtype=object),
        pd.Series(["b", "a", "b"]),
        pd.Series(["b", "a", "b"]).astype("category"),
        pd.Categorical(["b", "a", "b"]),
        pl.Series(["b", "a", "b"]),
        pl.Series(["b", "a", "b"], dtype=pl.Categorical),
        (c for c in "bab"),
    ],
    ids=lambda column: type(column).__name__,
)
def test_strings_are_accepted_in_every_container(column):
    (codes,), names = codes_of(column)
    assert codes.tolist() == [1, 0, 1]
    assert names == ["a", "b"]


@pytest.mark.parametrize(
    "column",
    [[3, -1, 3], torch.tensor([3, -1, 3], dtype=torch.int8), pd.Series([3, -1, 3]), [3.0, -1.0, 3.0], torch.tensor([3.0, -1.0, 3.0]),
     np.array([3, -1, 3], dtype=">i4"), torch.tensor([3.0, -1, 3], dtype=torch.bfloat16), pd.Series([3, -1, 3], dtype="Int64"),
     [torch.tensor(3), np.int16(-1), 3.0]],
    ids=str,
)  # fmt: skip
def test_numbers_are_accepted_in_every_container(column):
    (codes,), names = codes_of(column)
    assert codes.tolist() == [1, 0, 1]
    assert names == [-1, 3]


def test_a_number_and_its_text_are_two_classes():
    (codes,), names = codes_of([1, "1", 1.0, True, b"1"])
    assert codes.tolist() == [0, 1, 0, 0, 2]
    assert names == [1, "1", b"1"]


@pytest.mark.parametrize(
    "column",
    [[0.5], [float("nan")], [float("inf")], [None], [2.0**53 + 2], np.array([np.nan, 1]), np.array([1.5]), pd.Series([1, None]),
     torch.tensor([2.0**24 + 2]), torch.tensor([512.0], dtype=torch.bfloat16), np.array([4096], dtype=np.float16),
     pd.Series([1, None], dtype="Int64"), pd.Series(["a", None]), pl.Series([1, None]), [("a",)]],
    ids=str,
)  # fmt: skip
def test_missing_fractional_and_inexact_labels_are_refused(column):
    with pytest.raises(DataError, match="integers"):
        codes_of(column)


def test_the_message_names_the_row_of_a_bad_float():
    with pytest.raises(DataError, match=r"row 2 is the float 0\.5"):
        codes_of(np.array([1, 2, 0.5]))


@pytest.mark.parametrize("column", [[[1], [2]], "abc", 5, torch.tensor(1), np.zeros((2, 2), dtype=int), None], ids=str)
def test_what_is_no_column_is_refused(column):
    with pytest.raises((ShapeError, DataError)):
        codes_of(column)


def test_empty_columns_have_no_classes():
    (codes,), names = codes_of([])
    assert len(codes) == 0
    assert names == []
