"""Points between vectors: the papers' mixture for unit rows, lengths in between for others, and no NaN anywhere."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.core.interpolation import interpolate
from kinfold.core.reduce import normalise


def rows(n=4, seed=0, unit=True):
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return normalise(x) if unit else x


@given(st.floats(0, 1), st.integers(0, 50))
def test_unit_rows_are_mixed_and_scaled_back(share, seed):
    x, y = rows(seed=seed), rows(seed=seed + 100)
    for one, other, found in zip(x.tolist(), y.tolist(), interpolate(x, y, share).tolist(), strict=True):
        mixed = [share * a + (1 - share) * b for a, b in zip(one, other, strict=True)]
        length = math.sqrt(sum(value * value for value in mixed))
        assert found == pytest.approx([value / length for value in mixed], abs=1e-9)


def test_lengths_are_averaged_by_the_share():
    x, y = 2.0 * rows(), 5.0 * rows(seed=1)
    torch.testing.assert_close(interpolate(x, y, 0.25).norm(dim=1), torch.full((4,), 0.25 * 2 + 0.75 * 5, dtype=torch.float64))
    share = torch.tensor([[0.0], [1.0], [0.5], [0.25]], dtype=torch.float64)
    found = interpolate(x, y, share)
    torch.testing.assert_close(found[0], y[0])
    torch.testing.assert_close(found[1], x[1])
    torch.testing.assert_close(found[3], interpolate(x, y, 0.25)[3])


def test_its_gradient_is_that_of_small_steps():
    x, y = rows(unit=False).requires_grad_(), rows(seed=1, unit=False).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: interpolate(a, b, 0.3), (x, y))


def test_opposite_and_zero_rows_have_no_nan_in_value_or_gradient():
    x = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], requires_grad=True)
    y = torch.tensor([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]], requires_grad=True)
    found = interpolate(x, y, 0.5)
    found.sum().backward()
    assert torch.equal(found, torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.0, 0.0]]))
    assert torch.isfinite(x.grad).all()
    assert torch.isfinite(y.grad).all()
