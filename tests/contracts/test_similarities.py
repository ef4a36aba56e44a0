"""The contract that every line of the table of similarities keeps."""

from math import dist as euclidean
from math import hypot

import pytest
import torch
from torch.autograd import gradcheck

from kinfold.core.similarity import SIMILARITIES

ORACLES = {
    "cosine": lambda x, y: sum(a * b for a, b in zip(x, y, strict=True)) / (hypot(*x) * hypot(*y)),
    "dot": lambda x, y: sum(a * b for a, b in zip(x, y, strict=True)),
    "negative_euclidean": lambda x, y: -euclidean(x, y),
    "negative_squared_euclidean": lambda x, y: -(euclidean(x, y) ** 2),
}


def gradients(similarity, x, y):
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    similarity(x, y).sum().backward()
    return x.grad, y.grad


@pytest.mark.parametrize("name", sorted(SIMILARITIES))
class TestEverySimilarity:
    def test_matches_the_formula_for_rows_and_columns_of_different_number(self, name):
        x, y = torch.randn(3, 5, dtype=torch.float64), torch.randn(40, 5, dtype=torch.float64)
        expected = torch.tensor([[ORACLES[name](a, b) for b in y.tolist()] for a in x.tolist()], dtype=torch.float64)
        torch.testing.assert_close(SIMILARITIES[name](x, y), expected, rtol=1e-12, atol=1e-12)

    def test_gradient(self, name):
        x, y = (torch.randn(n, 4, dtype=torch.float64, requires_grad=True) for n in (3, 5))
        assert gradcheck(SIMILARITIES[name], (x, y))

    def test_larger_means_more_alike(self, name):
        x = torch.tensor([[1.0, 0.2]])
        near, far = SIMILARITIES[name](x, torch.tensor([[1.0, 0.3], [-0.5, 1.0]]))[0]
        assert near > far

    def test_is_symmetric(self, name):
        x, y = torch.randn(4, 3), torch.randn(6, 3)
        torch.testing.assert_close(SIMILARITIES[name](x, y), SIMILARITIES[name](y, x).T)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_is_computed_in_float32(self, name, dtype):
        x, y = torch.randn(4, 64).to(dtype), torch.randn(6, 64).to(dtype)
        sim = SIMILARITIES[name](x, y)
        assert sim.dtype == torch.float32
        torch.testing.assert_close(sim, SIMILARITIES[name](x.float(), y.float()), rtol=0, atol=0)
        assert all(g.dtype == dtype and g.isfinite().all() for g in gradients(SIMILARITIES[name], x, y))

    def test_autocast_does_not_lower_the_precision(self, name):
        x, y = torch.randn(4, 64), torch.randn(6, 64)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mixed = SIMILARITIES[name](x, y)
        torch.testing.assert_close(mixed, SIMILARITIES[name](x, y), rtol=0, atol=0)

    def test_mixed_precisions_meet_in_the_finer_one(self, name):
        x, y = torch.randn(4, 8, dtype=torch.bfloat16), torch.randn(6, 8, dtype=torch.float64)
        torch.testing.assert_close(SIMILARITIES[name](x, y), SIMILARITIES[name](x.double(), y))

    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
    def test_zero_vectors_and_equal_rows_have_finite_gradients(self, name, dtype):
        x = torch.tensor([[0.0, 0.0], [1.0, 2.0], [1.0, 2.0]], dtype=dtype)
        assert SIMILARITIES[name](x, x).isfinite().all()
        assert all(g.isfinite().all() for g in gradients(SIMILARITIES[name], x, x))

    def test_no_rows_give_no_rows(self, name):
        assert SIMILARITIES[name](torch.zeros(0, 3), torch.zeros(2, 3)).shape == (0, 2)
        assert SIMILARITIES[name](torch.zeros(2, 3), torch.zeros(0, 3)).shape == (2, 0)
