"""Initial weights that depend on a seed only, and leave the caller's random state alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw random numbers on the CPU from a seed; the state of before comes back at the end.

    Example:
        >>> with seeded(0):
        ...     first = torch.rand(2)
        >>> with seeded(0):
        ...     bool((torch.rand(2) == first).all())
        True
    """
    with torch.random.fork_rng(devices=[]):
        # The CPU's generator alone: torch.manual_seed would also reseed every accelerator.
        torch.default_generator.manual_seed(seed)
        yield
