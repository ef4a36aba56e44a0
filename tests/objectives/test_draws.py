"""Draws by number: the same after resuming, apart by purpose, and nobody else's generator moves."""

import numpy as np
import torch

from kinfold.objectives.draws import Draws


def numbers(sources):
    return [source.random() for source in sources]


def test_every_draw_and_purpose_differs_and_the_seed_decides():
    draws, twin, other = Draws(1), Draws(1), Draws(2)
    found = [numbers(draws.next(2)) for _ in range(3)]
    assert len({value for row in found for value in row}) == 6
    assert found == [numbers(twin.next(2)) for _ in range(3)]
    assert numbers(other.next(2)) != found[0]


def test_a_loaded_state_goes_on_with_the_next_draw():
    draws, twin = Draws(1), Draws(1)
    for _ in range(3):
        draws.next()
    twin.load_state_dict(draws.state_dict())
    assert twin.n == 3
    assert numbers(draws.next()) == numbers(twin.next())


def test_looking_changes_nothing():
    draws = Draws(1)
    first = numbers(draws.fixed(2))
    state = draws.state_dict()["count"].clone()
    assert numbers(draws.fixed(2)) == first
    assert torch.equal(draws.state_dict()["count"], state)
    assert first != numbers(draws.next(2))


def test_no_other_generator_moves():
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    Draws(0).next()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
