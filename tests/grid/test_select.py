"""Choosing on held-out classes: the last epoch, no test image, then all training classes for base and winner."""

import json
import shutil
from pathlib import Path

import pytest

import kinfold
from kinfold.comparison.compare import Row, Value
from kinfold.comparison.record import read_record
from kinfold.comparison.runs import read_run
from kinfold.errors import ConfigError, TrainingError
from kinfold.grid.execute import HowToRun, run_grid
from kinfold.grid.file import read_grid
from kinfold.grid.plan import cells_of
from kinfold.grid.select import choose, final_cells, selection_cells
from kinfold.grid.tables import Tables
from tests.grid.conftest import records

BELOW = "[variants.small]\nmodel.dim = 2\nnote = 'two numbers'\n[variants.still]\ntrain.epochs = 0\n"


def test_the_winner_is_trained_on_all_classes_and_the_others_are_not(grid_file):
    told = []
    result = run_grid(
        read_grid(grid_file("seeds = 2\nselect_seeds = 1", BELOW), ["data.hold_out_every=3"]),
        select="map_at_r",
        how=HowToRun(tell=told.append),
    )
    means = {
        name: read_record(Path(f"runs/tiny/selection/{name}/seed-0")).metrics["label"]["map_at_r"]
        for name in ("base", "small", "still")
    }
    winner = max(means, key=means.get)
    assert result.choices[""].winner == winner
    assert result.choices[""].means == pytest.approx(means, abs=1e-6)
    wanted = {"base", winner}
    assert set(records(Path("runs/tiny"))) == {f"selection/{name}/seed-0/record.json" for name in means} | {
        f"{name}/seed-{seed}/record.json" for name in wanted for seed in (0, 1)
    }
    assert [row.name for row in result.tabled[0][1]] == [name for name in ("base", "small", "still") if name in wanted]
    for name in ("selection.md", "selection.csv", "selection.json", "table.md"):
        assert Path("runs/tiny", name).exists()
    assert "chosen on held-out classes" in Path("runs/tiny/table.md").read_text()
    assert json.loads(Path("runs/tiny/table.json").read_text())["choices"][""]["winner"] == winner
    first, last = (
        read_run(Path(f"runs/tiny/{place}base/seed-0"), split).per_query.protocol
        for place, split in (("selection/", "val"), ("", "test"))
    )
    assert first["split"] == "val" and last["split"] == "test"
    assert first["selection"] == last["selection"] == "last epoch"
    assert last["held_out"].startswith("0 images") and last["training"].startswith("48 images"), "all training classes"
    assert first["held_out"].startswith("16 images") and first["training"].startswith("32 images")


def test_no_test_image_is_touched_to_choose(grid_file, tiny_photos, place):
    photos = place / "photos"
    shutil.copytree(tiny_photos, photos)
    table = kinfold.read_table(photos)
    for row in table.split_rows("test"):
        table.image_path(row).write_bytes(b"broken")
    told = []
    file = grid_file("seeds = 1", BELOW, photos=photos)
    result = run_grid(read_grid(file, ["data.hold_out_every=3"]), select="map_at_r", how=HowToRun(tell=told.append))
    assert result.choices and not any("failed" in line for line in told[:3])
    assert set(result.failed) == {f"{name}, seed 0" for name in {"base", result.choices[""].winner}}, "the second part needs them"


def test_every_fifth_class_is_held_out_unless_the_base_or_the_table_say_otherwise(grid_file, tiny_photos, place):
    def cells(*overrides, photos=tiny_photos):
        grid = read_grid(grid_file("seeds = 4\nselect_seeds = 2", photos=photos), [*overrides, "train.epochs=3"])
        return selection_cells(cells_of(grid), grid, Tables()), final_cells(cells_of(grid), Tables())

    first, final = cells()
    assert {cell.config.data.hold_out_every for cell in first} == {5} and {cell.config.data.hold_out_every for cell in final} == {
        None
    }
    assert [cell.seed for cell in first] == [0, 1, 0, 1] and len(final) == 8
    assert {cell.config.train.evaluate_every for cell in first} == {3} and {cell.config.evaluation.split for cell in first} == {
        "val"
    }
    assert {cell.config.data.hold_out_every for cell in cells("data.hold_out_every=2")[0]} == {2}
    own = place / "own"
    shutil.copytree(tiny_photos, own)
    text = (own / "table.csv").read_text()
    (own / "table.csv").write_text(
        "".join(line.replace("train", "val") if "class 5" in line else line for line in text.splitlines(True))
    )
    first, final = cells(photos=own)
    assert {cell.config.data.hold_out_every for cell in (*first, *final)} == {None}
    assert {cell.config.train.evaluate_every for cell in final} == {3}, "the last epoch, though the table could validate each"


@pytest.mark.parametrize("override", ["train.early_stopping_patience=2", "schedule.kind=plateau"])
def test_what_follows_validation_is_refused(grid_file, override):
    with pytest.raises(ConfigError, match="base, seed 0: --select compares last epochs"):
        run_grid(read_grid(grid_file(), [override]), select="map_at_r")


def test_a_metric_that_is_not_measured_is_refused(grid_file):
    with pytest.raises(ConfigError, match="--select 'map_at_q' is not measured: did you mean `map_at_r`"):
        run_grid(read_grid(grid_file()), select="map_at_q")


def test_the_metric_is_shown_even_if_the_file_does_not_name_it(grid_file):
    result = run_grid(
        read_grid(grid_file("seeds = 1\nmetrics = ['recall_at_1']"), ["data.hold_out_every=3"]), select="r_precision"
    )
    assert result.metrics == ("recall_at_1", "r_precision")
    assert "r_precision" in Path("runs/tiny/selection.md").read_text()


def test_a_variant_that_lacks_a_run_is_out_and_the_first_of_equals_wins():
    rows = [
        Row("base", (0,), {"map_at_r": Value(0.5, None)}),
        Row("equal", (0,), {"map_at_r": Value(0.5, None)}),
        Row("broken", (0,), {"map_at_r": Value(0.9, None)}, failed={1: "no memory"}),
        Row("gone", (), failed={0: "no memory"}),
    ]
    choice = choose(rows, "map_at_r", "label")
    assert choice.winner == "base" and list(choice.means) == ["base", "equal"]
    assert choose(rows[2:], "map_at_r", "label") is None


def test_if_nothing_can_be_chosen_the_reasons_are_said(grid_file):
    file = grid_file("seeds = 1", "")
    with pytest.raises(TrainingError, match="nothing can be chosen, every variant has a run that failed: base, seed 0: "):
        run_grid(read_grid(file, ["optimizer.learning_rate=1e30", "data.hold_out_every=3"]), select="map_at_r")
