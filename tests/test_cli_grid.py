"""`kinfold grid` and `kinfold compare` as a person types them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kinfold.cli import app
from kinfold.comparison.record import read_record
from tests.grid.conftest import flat, grid_file, place, records

__all__ = ["grid_file", "place"]  # fixtures of the grid's tests


def kinfold(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_grid_prints_its_table_and_says_what_it_does(grid_file):
    file = grid_file()
    planned = kinfold("grid", file, "--dry-run")
    assert planned.exit_code == 0 and "4 runs, 0 finished" in planned.stdout and not Path("runs").exists()
    done = kinfold("grid", file)
    assert done.exit_code == 0, done.stderr
    assert re.search(r"dim_8 2 \d+\.\d ± \d+\.\d [+-]\d+\.\d \[[+-]", flat(done.stdout))
    assert "[1/4] base, seed 0:" in done.stderr and "runs/tiny/table.md" in done.stdout
    again = kinfold("grid", file, "--json")
    values = json.loads(again.stdout)
    assert values["failed"] == {} and [row["name"] for row in values["datasets"][""]] == ["base", "dim_8"]
    assert "4 runs, 4 finished" in kinfold("grid", file, "--dry-run").stdout
    listed = json.loads(kinfold("grid", file, "--dry-run", "--json").stdout)
    assert {row["state"] for row in listed} == {"finished"}


def test_overrides_and_the_level_go_over_the_file(grid_file):
    done = kinfold("grid", grid_file("seeds = 1"), "model.pool=max", "--level", "kind", "--json")
    assert json.loads(done.stdout)["level"] == "kind"
    config = read_record(Path("runs/tiny/base/seed-0")).config
    assert config["model"]["pool"] == "max"


def test_a_selection_prints_both_tables(grid_file):
    done = kinfold("grid", grid_file("seeds = 1"), "data.hold_out_every=3", "--select", "map_at_r")
    assert done.exit_code == 0, done.stderr
    text = flat(done.stdout)
    assert "held-out classes" in text and "chosen on held-out classes of the training split by map_at_r of label:" in text
    planned = kinfold("grid", "tiny.toml", "data.hold_out_every=3", "--select", "map_at_r", "--dry-run")
    assert "of the last part only the base and the chosen variant" in flat(planned.stdout)


def test_a_run_that_fails_is_exit_code_1_after_the_table(grid_file):
    done = kinfold("grid", grid_file("seeds = 1", "[variants.bad]\noptimizer.learning_rate = 1e30\n"))
    assert done.exit_code == 1
    assert "bad 0 of 1 failed" in flat(done.stdout)
    assert re.search(
        r"error: 1 run\(s\) failed; the same command tries them again. bad, seed 0: the (loss term|gradient)", flat(done.stderr)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["grid", "nowhere.toml"], "nowhere.toml is no file"),
        (["grid", "tiny.toml", "model.dimm=3"], r"\[base\]: `model.dimm` is not known: did you mean `dim`"),
        (["grid", "tiny.toml", "--select", "map_at_q"], "--select 'map_at_q' is not measured: did you mean `map_at_r`"),
        (["grid", "tiny.toml", "--processes", "0"], "processes"),
        (["grid", "tiny.toml", "--level", "kinf"], "did you mean `kind`"),
        (["gird", "tiny.toml"], "did you mean `grid`"),
        (["compare", "nowhere", "elsewhere"], "nowhere holds no run"),
        (["compare", "nowhere", "elsewhere", "--split", "tset"], "did you mean `test`"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(grid_file, arguments, message):
    grid_file("seeds = 1")
    result = kinfold(*arguments)
    assert result.exit_code == 2, (result.stdout, result.stderr, result.exception)
    assert re.search(message, flat(result.stderr)) and "Traceback" not in result.stderr


@pytest.fixture
def runs(grid_file, tiny_photos) -> Path:
    """Return a folder of runs that `kinfold train` made: base and wide with two seeds, and one on fewer classes."""
    fast = [f"data.root={tiny_photos}", "model.trunk=convnet", "data.size=24", "batches.batch_size=12", "train.epochs=1"]
    Path("plain.toml").write_text("")
    for name, more in {
        "base-0": ["model.dim=8"],
        "base-1": ["model.dim=8", "seed=1"],
        "wide-0": ["model.dim=16"],
        "wide-1": ["model.dim=16", "seed=1"],
        "long-0": ["model.dim=8", "train.epochs=2", "objective.loss=proxy_nca"],
        "held-0": ["model.dim=8", "data.hold_out_every=3"],
    }.items():
        assert kinfold("train", "plain.toml", *fast, *more, f"run=runs/{name}").exit_code == 0
    return Path("runs")


def test_runs_of_train_are_compared_and_grouped_by_seed(runs):
    names = ("base-0", "base-1", "wide-0", "wide-1", "long-0")
    result = kinfold("compare", *(runs / name for name in names))
    assert result.exit_code == 0, result.stderr
    text = flat(result.stdout)
    assert "runs/wide-0 differs in `model.dim` (8, 16)" in text
    assert "runs/long-0 differs besides: train.epochs (1, here 2)" in text
    assert "the difference is over the 1 common seed(s) 0" in text
    named = kinfold("compare", *(runs / name for name in names), "--factor", "train.epochs")
    assert "differs besides" not in flat(named.stdout)
    values = json.loads(kinfold("compare", runs / "base-0", runs / "wide-0", "--level", "kind", "--json").stdout)
    assert values["protocol"]["split"] == "test"
    recall = [read_record(runs / name).metrics["kind"]["recall_at_1"] for name in ("base-0", "wide-0")]
    assert values["rows"][1]["differences"]["recall_at_1"]["mean"] == pytest.approx(recall[1] - recall[0], abs=1e-6)

    refused = kinfold("compare", runs / "base-0", runs / "held-0")
    assert refused.exit_code == 2
    assert re.search(r"they differ in `held_out` \(.*0 images.*16 images.*`training`", flat(refused.stderr))
    only_seeds = kinfold("compare", runs / "base-0", runs / "base-1")
    assert only_seeds.exit_code == 2 and "differ by their seed only" in flat(only_seeds.stderr)
    crossed = kinfold("compare", runs / "base-0", runs / "wide-1")
    assert crossed.exit_code == 2 and "no seed in common (0 and 1)" in flat(crossed.stderr)

    (runs / "wide-0" / "per_query_test.npz").unlink()
    missing = kinfold("compare", runs / "base-0", runs / "wide-0")
    assert missing.exit_code == 2 and "per_query_test.npz is missing" in flat(missing.stderr)
    assert kinfold("evaluate", runs / "wide-0").exit_code == 0
    assert kinfold("compare", runs / "base-0", runs / "wide-0").exit_code == 0, "measuring again writes it"
    assert kinfold("evaluate", runs / "base-0", "--similarity", "dot").exit_code == 0
    other = kinfold("compare", runs / "base-0", runs / "wide-0")
    assert other.exit_code == 2 and '`similarity` ("dot", "cosine")' in flat(other.stderr)


LONG = "[variants.long]\ntrain.epochs = 40\n"


def wait_for(condition, process) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline and process.poll() is None, process.stderr.read()
        time.sleep(0.01)


def start(file: Path, *more: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "kinfold.cli", "grid", str(file), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_a_killed_grid_goes_on_without_repeating_a_finished_run(grid_file):
    file = grid_file("seeds = 1", LONG)
    process = start(file)
    log = Path("runs/tiny/long/seed-0/log.jsonl")
    wait_for(lambda: log.exists() and log.read_text().count("\n") > 2, process)
    process.kill()
    process.communicate()
    before = records(Path("runs"))
    assert list(before) == ["tiny/base/seed-0/record.json"]

    again = kinfold("grid", file)
    assert again.exit_code == 0, again.stderr
    after = records(Path("runs"))
    assert after["tiny/base/seed-0/record.json"] == before["tiny/base/seed-0/record.json"]
    assert len(after) == 2
    killed = read_record(Path("runs/tiny/long/seed-0"))
    assert killed.resumed and killed.n_steps == 40 * 4
    steps = [row["step"] for row in map(json.loads, log.read_text().splitlines()) if "val/recall_at_1" not in row]
    assert steps == sorted(set(steps)), "no step is trained twice in the log"

    whole = kinfold("grid", grid_file("seeds = 1\nfolder = 'whole'", LONG))
    assert whole.exit_code == 0
    assert read_record(Path("whole/long/seed-0")).metrics == killed.metrics


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_the_run_under_way(grid_file, number):
    process = start(grid_file("seeds = 1", LONG), "train.epochs=100000")
    log = Path("runs/tiny/base/seed-0/log.jsonl")
    wait_for(lambda: log.exists() and log.stat().st_size > 0, process)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert re.search(r"error: stopped at step \d+ .*base/seed-0 is saved; the same command goes on", flat(stderr))
    assert "Traceback" not in stderr and not stdout
