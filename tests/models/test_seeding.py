"""Seeded initial weights."""

import torch

from kinfold.models.seeding import seeded


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
