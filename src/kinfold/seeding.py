"""Random numbers from a seed for a while; the callers' generators come back as they were."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch (on the CPU), `random` and numpy inside the block, and put their states back after it.

    Example:
        >>> with seeded(0):
        ...     first = torch.rand(2)
        >>> with seeded(0):
        ...     bool((torch.rand(2) == first).all())
        True
    """
    # The CPU's generator alone: torch.manual_seed would also reseed every accelerator.
    states = torch.default_generator.get_state(), random.getstate(), np.random.get_state()
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    try:
        yield
    finally:
        torch.default_generator.set_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])
