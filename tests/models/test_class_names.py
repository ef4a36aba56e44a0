"""Class names."""

import numpy as np
import pytest
import torch

from kinfold.errors import DataError
from kinfold.models.class_names import checked_class_names


def test_class_names_are_checked():
    assert checked_class_names(np.array([3, 2**60])) == [3, 2**60]
    assert checked_class_names(torch.tensor([2, 1])) == [2, 1]
    assert checked_class_names(None) is None
    assert checked_class_names(("a", np.str_("b"))) == ["a", "b"]
    for wrong, message in (
        ([1, "1"], "all strings or all whole numbers"),
        ([True, False], "not .'bool'"),
        ([1.0], "float"),
        (["a", "b", "a"], "'a' more than once"),
        ("abc", "list of class names"),
        (7, "list of class names"),
    ):
        with pytest.raises(DataError, match=message):
            checked_class_names(wrong)
