"""A seed for a while: it alone decides, and the callers' generators are put back."""

import random

import numpy as np
import pytest
import torch

from kinfold.seeding import seeded


def test_the_seed_alone_decides_and_the_callers_random_state_stays():
    before = torch.random.get_rng_state()
    with seeded(1):
        first = torch.rand(4)
    torch.rand(1)
    with seeded(1):
        second = torch.rand(4)
    with seeded(2):
        third = torch.rand(4)
    torch.random.set_rng_state(before)
    with seeded(3):
        torch.rand(4)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_generators_are_put_back_after_an_error():
    torch.manual_seed(5)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    with pytest.raises(KeyError), seeded(3):
        torch.rand(1), random.random(), np.random.random()
        raise KeyError
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == random.getstate()
    assert (before[2] == np.random.get_state()[1]).all()
