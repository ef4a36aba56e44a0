import pytest
import torch

from kinfold.evaluation.precision import exact_products


def test_autocast_gradients_and_short_products_are_off_inside_and_back_afterwards():
    x = torch.randn(4, 4, requires_grad=True)
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", torch.bfloat16):
            with pytest.raises(KeyError), exact_products(x.device):
                assert torch.get_float32_matmul_precision() == "highest"
                assert (x @ x).dtype == torch.float32
                assert not (x @ x).requires_grad
                raise KeyError
            assert (x @ x).dtype == torch.bfloat16
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
