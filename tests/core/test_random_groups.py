"""Random hierarchies: even, nested, and another one for each seed."""

import pytest
import torch

from kinfold.core.random_groups import random_codes, random_hierarchy
from kinfold.errors import ConfigError


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_random_codes_are_even_and_depend_on_the_generator():
    one, other = (random_codes(103, 10, generator=seeded(seed)) for seed in (0, 1))
    assert set(torch.bincount(one).tolist()) == {10, 11}
    assert not torch.equal(one, other)


def test_random_hierarchies_are_even_and_nested_and_differ_by_seed():
    one, other = (random_hierarchy(range(30), (7, 2), seed=seed) for seed in (0, 1))
    assert one.sizes == (7, 2)
    assert {len(members) for members in one.members("level_1").values()} == {4, 5}
    assert one.levels[0].parent != other.levels[0].parent


def test_more_groups_than_classes_are_refused():
    with pytest.raises(ConfigError, match=r"sizes = \[4\] for 3 classes"):
        random_hierarchy(range(3), (4,), seed=0)
