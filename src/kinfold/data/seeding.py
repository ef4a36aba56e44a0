"""Randomness of one augmentation: decided by what is augmented, not by who does it or when."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from struct import pack

import numpy as np
import torch


def stable_seed(*numbers: int) -> int:
    """Return 64 bits that depend on the numbers only (seed, epoch, item, view): the same on every machine, in every process.

    Example:
        >>> stable_seed(0, 0, 0, 0) == stable_seed(0, 0, 0, 0) != stable_seed(0, 0, 0, 1)
        True
    """
    return int.from_bytes(blake2b(pack(f"<{len(numbers)}q", *numbers), digest_size=8).digest(), "little")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch (on the CPU), `random` and numpy inside the block, and put their states back after it."""
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
