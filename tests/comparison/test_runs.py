"""Runs that differ by their seed only are one group."""

import pytest

from kinfold.comparison.runs import grouped, read_run
from kinfold.errors import ConfigError, DataError
from tests.comparison.conftest import made_run


def test_runs_of_one_configuration_are_grouped_by_seed_in_the_order_they_are_named():
    runs = [
        made_run([1, 0], seed=1, name="a/base/seed-1"),
        made_run([1, 0], seed=0, name="a/wide/seed-0", model__dim=128),
        made_run([1, 0], seed=0, name="a/base/seed-0"),
    ]
    base, wide = grouped(runs)
    assert (base.name, list(base.runs)) == ("a/base", [1, 0])
    assert (wide.name, list(wide.runs)) == ("a/wide/seed-0", [0])


def test_two_groups_in_one_folder_are_called_after_their_first_runs():
    settings = [({}, 0), ({}, 1), ({"model__dim": 8}, 0), ({"model__dim": 8}, 1)]
    runs = [made_run([1, 0], seed=seed, name=f"runs/{n}", **more) for n, (more, seed) in enumerate(settings)]
    assert [group.name for group in grouped(runs)] == ["runs/0", "runs/2"]


def test_the_same_run_twice_is_refused():
    with pytest.raises(ConfigError, match="b and c have the same settings and the same seed, 3"):
        grouped([made_run([1, 0], seed=3, name="b"), made_run([1, 0], seed=3, name="c")])


def test_a_folder_without_a_run_is_an_error(tmp_path):
    with pytest.raises(DataError, match="holds no run"):
        read_run(tmp_path, "test")
