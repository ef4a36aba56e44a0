"""Random numbers of an objective, by number of the draw, so that a resumed run draws what it would have drawn."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


class Draws(nn.Module):
    """Counts draws, and gives each a random generator that seed and count alone decide; torch's own generators stay as they are.

    Args:
        seed: of all draws.

    Example:
        >>> draws, twin = Draws(0), Draws(0)
        >>> _ = draws.next()
        >>> twin.load_state_dict(draws.state_dict())
        <All keys matched successfully>
        >>> draws.next(1)[0].random() == twin.next(1)[0].random()
        True
    """

    count: Tensor

    def __init__(self, seed: int = 0):
        super().__init__()
        self.seed = seed
        self.register_buffer("count", torch.tensor(0))
        self._count = 0  # the buffer's value without waiting for a GPU
        self.register_load_state_dict_post_hook(_restore_count)

    @property
    def n(self) -> int:
        """Number of draws so far."""
        return self._count

    def next(self, n: int = 1) -> list[np.random.Generator]:
        """Return `n` generators apart from each other, for the purposes of one draw, and count it."""
        found = [np.random.default_rng((self.seed, self._count, purpose)) for purpose in range(n)]
        self._count += 1
        self.count += 1
        return found

    def fixed(self, n: int = 1) -> list[np.random.Generator]:
        """Return `n` generators that are always the same, for looking without changing anything."""
        return [np.random.default_rng((self.seed, 2**62, purpose)) for purpose in range(n)]


def _restore_count(draws: Draws, incompatible: Any) -> None:
    del incompatible
    draws._count = int(draws.count)
