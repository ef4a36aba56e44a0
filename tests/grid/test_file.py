"""Reading a grid file: what it may hold, and one clear error for what it may not."""

from pathlib import Path

import pytest

from kinfold.errors import ConfigError
from kinfold.grid.file import read_grid


def test_a_file_is_read_with_its_defaults(grid_file):
    grid = read_grid(grid_file())
    assert (grid.name, grid.folder.as_posix(), grid.levels, grid.metrics) == (
        "tiny",
        "runs/tiny",
        ("label",),
        ("recall_at_1", "map_at_r"),
    )
    assert [(variant.name, variant.seeds) for variant in grid.variants] == [("base", (0, 1)), ("dim_8", (0, 1))]
    assert list(grid.datasets) == [""] and not grid.keep_models


def test_seeds_are_a_number_or_a_list_and_a_variant_may_have_its_own(grid_file):
    below = '[variants.dim_8]\nmodel.dim = 8\nseeds = [7, 9]\nnote = "half"\n'
    grid = read_grid(grid_file("seeds = [3, 7]", below))
    assert [variant.seeds for variant in grid.variants] == [(3, 7), (7, 9)]
    assert grid.variants[1].note == "half" and grid.variants[1].overlay == {"model": {"dim": 8}}


def test_overrides_go_over_the_base_and_a_level_before_the_files(grid_file):
    grid = read_grid(grid_file("levels = ['label']"), ["train.epochs=7", "model.pool=avg+max"], levels=["kind"])
    assert grid.base["train"] == {"epochs": 7} and grid.base["model"]["pool"] == "avg+max"
    assert grid.levels == ("kind", "label")


def test_the_text_none_is_no_value_as_in_overrides(grid_file):
    grid = read_grid(grid_file(below='[variants.raw]\nmodel = { dim = "none" }\n'))
    assert grid.variants[1].overlay == {"model": {"dim": None}}


@pytest.mark.parametrize(
    ("above", "below", "message"),
    [
        ("sedes = 3", "", "`sedes` is not known: did you mean `seeds`"),
        ("seeds = 0", "", "`seeds` = 0: give a number of seeds above 0"),
        ("seeds = [1, 1]", "", "distinct whole numbers"),
        ("seeds = [-1]", "", "distinct whole numbers from 0"),
        ("seeds = 'three'", "", "`seeds"),
        ("metrics = []", "", "`metrics`"),
        ("", "[variants.base]\nmodel.dim = 8", "a variant cannot be named `base`"),
        ("", "[variants.selection]\nmodel.dim = 8", "cannot be named 'selection'"),
        ("", "[variants.'a/b']\nmodel.dim = 8", "a variant cannot be named 'a/b'"),
        ("", "[datasets.'../x']\nmodel.dim = 8", "a dataset cannot be named '../x'"),
        ("", "[variants.x]\nmodel.dim = 8\nseeds = 'all'", "variant `x`: `seeds` = 'all'"),
        ("seeds = 2", "[variants.x]\nmodel.dim = 8\nseeds = [5]", "variant `x` has no seed in common with the base"),
        ("", "[variants.x]\nmodel.dim = 8\nnote = 3", "variant `x`: `note` = 3 must be text"),
        ("x = [", "", "is not TOML"),
    ],
)
def test_each_fault_is_one_clear_error(grid_file, above, below, message):
    with pytest.raises(ConfigError, match=message):
        read_grid(grid_file(above, below))


def test_a_missing_file_is_named():
    with pytest.raises(ConfigError, match=r"nowhere\.toml is no file"):
        read_grid(Path("nowhere.toml"))
