"""Full float32 products, whatever the training loop around has switched on."""

from collections.abc import Generator
from contextlib import contextmanager

import torch


@contextmanager
def exact_products(device: torch.device) -> Generator[None]:
    """Switch off gradients, autocast and shortened matrix products inside, and put the latter back afterwards."""
    before = torch.get_float32_matmul_precision()
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        try:
            if before != "highest":
                torch.set_float32_matmul_precision("highest")
            yield
        finally:
            if before != "highest":
                torch.set_float32_matmul_precision(before)
