"""Seeds by content, and generators that are put back."""

import random

import numpy as np
import pytest
import torch

from kinfold.data.seeding import seeded, stable_seed


def test_generators_are_put_back_after_an_error():
    torch.manual_seed(5)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    with pytest.raises(KeyError), seeded(3):
        torch.rand(1), random.random(), np.random.random()
        raise KeyError
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert (before[2] == np.random.get_state()[1]).all()


def test_seeds_are_the_same_on_every_machine():
    assert stable_seed(1, 2, 3, 4) == 15195315728730727403
    grid = {stable_seed(a, b, c, d) for a in range(4) for b in range(4) for c in range(4) for d in range(4)}
    assert len(grid) == 256
