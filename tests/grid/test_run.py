"""Cells are run once; what fails does not stop the others; what belongs to another grid is refused."""

import json
import shutil
from pathlib import Path

import pytest

import kinfold.grid.run as running
from kinfold.comparison.record import read_record, record_file
from kinfold.errors import ConfigError, DataError
from kinfold.grid.execute import HowToRun, plan_of, run_grid
from kinfold.grid.file import read_grid
from kinfold.grid.folder import state_of
from kinfold.grid.plan import cells_of
from kinfold.grid.run import CellOptions, run_cell
from kinfold.grid.tables import Tables
from kinfold.lock import claim
from tests.grid.conftest import records


@pytest.fixture
def told():
    return []


@pytest.fixture
def how(told):
    return HowToRun(tell=told.append)


def test_a_grid_leaves_tables_and_small_run_folders(grid_file, how, told):
    result = run_grid(read_grid(grid_file()), how=how)
    folder = Path("runs/tiny")
    assert {path.name for path in (folder / "base/seed-0").iterdir()} == {
        "config.json",
        "environment.json",
        "log.jsonl",
        "metrics.json",
        "per_query_test.npz",
        "record.json",
    }
    values = json.loads((folder / "table.json").read_text())
    rows = values["datasets"][""]
    assert [row["name"] for row in rows] == ["base", "dim_8"]
    mean = sum(read_record(folder / f"dim_8/seed-{seed}").metrics["label"]["map_at_r"] for seed in (0, 1)) / 2
    assert rows[1]["values"]["map_at_r"]["mean"] == pytest.approx(mean, abs=1e-6)
    assert (folder / "table.md").read_text().count("\n| ") == 4 and (folder / "table.csv").read_text().count("\n") == 5
    assert not result.failed and not (folder / "errors").exists()
    assert told[-1].startswith("[4/4] dim_8, seed 1: recall_at_1 ")


def test_finished_cells_are_not_run_again(grid_file, how, told, monkeypatch):
    file = grid_file()
    first = run_grid(read_grid(file), how=how)
    before = records(Path("runs"))
    assert len(before) == 4
    monkeypatch.setattr(running, "run_experiment", lambda *_, **__: pytest.fail("a finished cell was run again"))
    again = run_grid(read_grid(file), how=how)
    assert records(Path("runs")) == before and again.values == first.values
    assert told[-1].endswith("before)")


def test_only_missing_cells_are_run(grid_file, how):
    run_grid(read_grid(grid_file()), how=how)
    before = records(Path("runs"))
    shutil.rmtree("runs/tiny/dim_8/seed-1")
    run_grid(read_grid(grid_file("seeds = 3")), how=how)
    after = records(Path("runs"))
    kept = [name for name in after if name in before and "dim_8/seed-1" not in name]
    assert len(kept) == 3 and all(after[name] == before[name] for name in kept) and len(after) == 6


def test_models_are_kept_on_request(grid_file, how):
    run_grid(read_grid(grid_file("seeds = 1\nkeep_models = true")), how=how)
    assert Path("runs/tiny/base/seed-0/model/config.json").exists()
    run_grid(read_grid(grid_file("seeds = 1")), how=how)
    assert not Path("runs/tiny/base/seed-0/model").exists(), "what a killed run could not remove is removed later"


def test_a_cell_that_fails_is_marked_and_the_others_run(grid_file, how, told):
    below = "[variants.bad]\noptimizer.learning_rate = 1e30\n[variants.good]\nmodel.dim = 8\n"
    file = grid_file("seeds = 1", below)
    result = run_grid(read_grid(file), how=how)
    assert list(result.failed) == ["bad, seed 0"]
    rows = {row.name: row for row in result.tabled[0][1]}
    assert rows["bad"].values == {} and "last good checkpoint" in rows["bad"].failed[0]
    assert rows["good"].differences and "| bad | 0 of 1 | failed |" in Path("runs/tiny/table.md").read_text()
    assert "TrainingError" in Path("runs/tiny/errors/bad-seed-0.txt").read_text()
    before = records(Path("runs"))
    run_grid(read_grid(file), how=how)
    assert records(Path("runs")) == before, "only the failed one was tried again"


def test_an_error_that_nobody_foresaw_fails_its_cell_alone(grid_file, how, monkeypatch):
    run = running.run_experiment

    def breaks(config, **more):
        if config.model.dim == 8:
            raise MemoryError
        return run(config, **more)

    monkeypatch.setattr(running, "run_experiment", breaks)
    result = run_grid(read_grid(grid_file("seeds = 1")), how=how)
    assert result.failed == {"dim_8, seed 0": "MemoryError: no message"}
    monkeypatch.setattr(running, "run_experiment", run)
    assert run_grid(read_grid(grid_file("seeds = 1")), how=how).failed == {}
    assert list(Path("runs/tiny/errors").iterdir()) == []


def test_tables_are_read_once(grid_file, how, monkeypatch):
    from kinfold.grid import tables

    read, build = [], tables.build_table
    monkeypatch.setattr(tables, "build_table", lambda data: read.append(data.root) or build(data))
    run_grid(read_grid(grid_file()), how=how)
    assert len(read) == 1


def test_a_folder_of_another_configuration_is_refused_before_anything_runs(grid_file, how):
    run_grid(read_grid(grid_file("seeds = 1")), how=how)
    before = records(Path("runs"))
    with pytest.raises(ConfigError, match=r"base/seed-0 holds a run of another configuration .*`train.epochs` \(1, 2\)"):
        run_grid(read_grid(grid_file("seeds = 2"), ["train.epochs=2"]), how=how)
    assert records(Path("runs")) == before


def test_an_unfinished_run_of_another_configuration_is_refused_too(grid_file, how):
    run_grid(read_grid(grid_file("seeds = 1")), how=how)
    record_file(Path("runs/tiny/base/seed-0")).unlink()
    with pytest.raises(ConfigError, match=r"`model.pool` \(\"avg\", \"max\"\)"):
        run_grid(read_grid(grid_file("seeds = 1"), ["model.pool=max"]), how=how)


def test_what_changes_no_number_is_another_command_only(grid_file, how, tiny_photos, place):
    run_grid(read_grid(grid_file("seeds = 1")), how=how)
    before = records(Path("runs"))
    shutil.copytree(tiny_photos, place / "moved")
    moved = grid_file("seeds = 1", photos=place / "moved")
    run_grid(read_grid(moved, ["batches.workers=1", "train.log_every=3"]), how=how)
    assert records(Path("runs")) == before


def test_other_images_under_the_same_settings_are_refused(grid_file, how, tiny_photos, place):
    photos = place / "photos"
    shutil.copytree(tiny_photos, photos)
    run_grid(read_grid(grid_file("seeds = 1", photos=photos)), how=how)
    lines = (photos / "table.csv").read_text().splitlines()
    (photos / "table.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(ConfigError, match=r"there and here: `images` \(\"16 images .*15 images"):
        run_grid(read_grid(grid_file("seeds = 1", photos=photos)), how=how)


def test_a_level_that_was_not_measured_is_refused(grid_file, how):
    run_grid(read_grid(grid_file("seeds = 1")), how=how)
    with pytest.raises(ConfigError, match="was not measured on the level kind"):
        run_grid(read_grid(grid_file("seeds = 1"), levels=["kind"]), how=how)
    with pytest.raises(ConfigError, match="no level 'kinf': did you mean `kind`"):
        run_grid(read_grid(grid_file("seeds = 1"), levels=["kinf"]), how=how)
    both = run_grid(read_grid(grid_file("seeds = 1\nfolder = 'both'\nlevels = ['kind', 'label']")), how=how)
    assert both.values["level"] == "kind"
    kind = read_record(Path("both/base/seed-0")).metrics["kind"]["map_at_r"]
    assert both.tabled[0][1][0].values["map_at_r"].mean == pytest.approx(kind, abs=1e-6)


def test_a_split_without_images_is_found_before_training(grid_file, how):
    with pytest.raises(DataError, match="base, seed 0: the table has no row in split 'val'"):
        run_grid(read_grid(grid_file(), ["evaluation.split=val"]), how=how)
    assert not Path("runs").exists()


def test_a_plan_says_how_far_each_cell_is_and_touches_nothing(grid_file, how):
    assert [state for _, state in plan_of(read_grid(grid_file()))] == ["new"] * 4
    assert not Path("runs").exists()
    run_grid(read_grid(grid_file("seeds = 1")), how=how)
    record_file(Path("runs/tiny/dim_8/seed-0")).unlink()
    assert [state for _, state in plan_of(read_grid(grid_file()))] == ["finished", "new", "begun", "new"]


def test_a_cell_that_another_process_holds_is_busy_and_then_waited_for(grid_file, how, told):
    grid = read_grid(grid_file("seeds = 1"))
    options, tables = CellOptions(grid.folder, grid.levels, keep_models=False), Tables()
    cell = cells_of(grid)[0]
    with claim(grid.folder / ".locks" / "base-seed-0", wait=False) as is_mine:
        assert is_mine
        assert run_cell(cell, options, tables, wait=False).kind == "busy"
        assert state_of(cell, tables, grid.levels) == "new"
    assert run_cell(cell, options, tables, wait=True).kind == "done"


def test_a_broken_record_fails_with_its_name(grid_file, how):
    run_grid(read_grid(grid_file("seeds = 1")), how=how)
    record_file(Path("runs/tiny/base/seed-0")).write_text("{")
    with pytest.raises(DataError, match=r"seed-0/record\.json cannot be read"):
        run_grid(read_grid(grid_file("seeds = 1")), how=how)


def test_two_data_sets_make_two_tables(grid_file, how):
    result = run_grid(read_grid(grid_file("seeds = 1", "[datasets.a]\n[datasets.b]\ndata.size = 16\n")), how=how)
    assert [name for name, _ in result.tabled] == ["a", "b"]
    assert "## a" in Path("runs/tiny/table.md").read_text() and Path("runs/tiny/b/base/seed-0/record.json").exists()


def test_every_level_has_a_table_of_the_metrics_that_it_has(grid_file, how, told):
    below = "[base.evaluation]\ncoarse_metrics = ['recall_at_1']\n[variants.dim_8]\nmodel.dim = 8\n"
    file = grid_file("seeds = 1\nlevels = ['label', 'kind']", below)
    result = run_grid(read_grid(file), how=how)
    folder = Path("runs/tiny")
    fine, coarse = (json.loads((folder / f"{name}.json").read_text()) for name in ("table", "table.kind"))
    assert (fine["level"], fine["metrics"]) == ("label", ["recall_at_1", "map_at_r"]) and result.values["level"] == "label"
    assert (coarse["level"], coarse["metrics"]) == ("kind", ["recall_at_1"])
    record = read_record(folder / "dim_8/seed-0")
    for values, level in ((fine, "label"), (coarse, "kind")):
        found = values["datasets"][""][1]
        assert found["values"]["recall_at_1"]["mean"] == pytest.approx(record.metrics[level]["recall_at_1"], abs=1e-6)
        assert found["differences"]
    page = (folder / "table.kind.md").read_text()
    assert "Level: kind." in page and "map_at_r" not in page and (folder / "table.kind.csv").exists()
    assert "map_at_r" in told[-1]

    shown = run_grid(read_grid(file, levels=["kind"]), how=how)
    assert shown.metrics == ("recall_at_1",) and shown.values["level"] == "kind"
    assert (folder / "table.label.md").exists() and "map_at_r" not in told[-1]
    with pytest.raises(ConfigError, match="--select 'map_at_r' is not measured on level `kind`"):
        run_grid(read_grid(file, levels=["kind"]), how=how, select="map_at_r")
