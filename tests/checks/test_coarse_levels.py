"""Coarse levels that never begin, never move, or begin from random proxies; a sound one is let pass."""

import pytest

from kinfold.checks.coarse_levels import coarse_level_findings
from kinfold.checks.training import check_training
from kinfold.core.random_groups import random_hierarchy
from kinfold.data.read import read_table
from kinfold.objectives import HierarchicalProxies
from tests.checks.tiny import DIM, codes, embedder, proxies, recipe, the


@pytest.fixture
def table(tiny_photos):
    return read_table(tiny_photos)


def found(table, *, epochs=5, n_batches=4, accumulate=1, **changes):
    objective = HierarchicalProxies(proxies(table), None if "hierarchy" in changes else (3,), **changes)
    train = {"epochs": epochs, "gradient_accumulation_steps": accumulate}
    return coarse_level_findings(objective, recipe(train=train), n_batches=n_batches)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"warmup_steps": 20}, ["coarse_levels_never_begin"]),
        ({"warmup_steps": 10, "accumulate": 2}, ["coarse_levels_never_begin"]),
        ({"warmup_steps": 19, "refresh_every": 1}, []),
        ({"warmup_steps": 5, "refresh_every": 21}, ["never_refreshed"]),
        ({"warmup_steps": 12, "refresh_every": 11}, ["never_refreshed"]),
        ({"warmup_steps": 5, "refresh_every": 20}, []),
        ({"refresh_every": 5}, ["groups_of_random_proxies"]),
        ({"refresh_every": 5, "groups_from": "embeddings"}, []),
        ({"refresh_every": 5, "hierarchy": random_hierarchy(range(6), (2,), seed=0)}, []),
    ],
)
def test_steps_are_held_against_those_of_the_run(table, changes, code):
    assert codes(found(table, **changes), "warning", "note") == code


def test_others_have_no_coarse_levels(table):
    for objective in (proxies(table), HierarchicalProxies(proxies(table), ())):
        assert coarse_level_findings(objective, recipe(), n_batches=4) == []


def test_a_check_of_training_finds_them(table):
    objective = HierarchicalProxies(proxies(table), (3,), warmup_steps=1000)
    finding = the(check_training(table, embedder(), objective, recipe()), "coarse_levels_never_begin")
    assert "`objective.warmup_steps` = 1000" in finding.message
    assert objective.dim == DIM
