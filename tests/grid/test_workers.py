"""Cells in several processes: the same numbers, each once, and a process that dies takes its cell alone with it."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from kinfold.comparison.record import read_record, record_file
from kinfold.errors import Interrupted, TrainingError
from kinfold.grid import workers
from kinfold.grid.execute import HowToRun, run_grid
from kinfold.grid.file import read_grid
from kinfold.grid.plan import cells_of
from kinfold.grid.run import CellOptions
from tests.grid.conftest import records

pytestmark = pytest.mark.skipif(
    not (workers.AVAILABLE and Path("/proc/self").exists()), reason="needs file locks, and /proc to look"
)


def numbers(folder: str) -> dict[str, dict]:
    files = sorted(Path(folder).rglob("record.json"))
    return {file.parent.relative_to(folder).as_posix(): read_record(file.parent).metrics["label"] for file in files}


def run_alone(file: Path):
    """Run a grid's cells in one worker process."""
    grid = read_grid(file)
    options = CellOptions(grid.folder, grid.levels, keep_models=False)
    cells = cells_of(grid)
    outcomes = workers.run_in_processes(cells, options, 1, wait_for_others=False, told=lambda *_: None)
    return {cell.name: outcome for cell, outcome in outcomes.items()}


def test_two_processes_find_what_one_finds(grid_file, monkeypatch):
    told = []
    alone = run_grid(read_grid(grid_file("seeds = 1\nfolder = 'alone'")))
    both = run_grid(read_grid(grid_file("seeds = 1\nfolder = 'both'")), how=HowToRun(n_processes=2, tell=told.append))
    assert len(told) == 2 and not both.failed
    assert list(numbers("both")) == ["base/seed-0", "dim_8/seed-0"]
    for name, found in numbers("both").items():
        assert found == pytest.approx(numbers("alone")[name], abs=1e-6)
    assert both.tabled[0][1][1].differences["map_at_r"].mean == pytest.approx(
        alone.tabled[0][1][1].differences["map_at_r"].mean, abs=1e-6
    )
    before = records(Path("both"))
    monkeypatch.setattr("kinfold.grid.execute.run_in_processes", lambda *_, **__: pytest.fail("nothing is left for a process"))
    run_grid(read_grid(grid_file("seeds = 1\nfolder = 'both'")), how=HowToRun(n_processes=2))
    assert records(Path("both")) == before


def test_a_process_that_dies_fails_its_cell_and_the_next_one_goes_on(grid_file):
    file = grid_file("seeds = 1", "[variants.endless]\ntrain.epochs = 100000\n[variants.dim_8]\nmodel.dim = 8\n")
    log = Path("runs/tiny/endless/seed-0/log.jsonl")
    killed = threading.Thread(target=kill_the_worker_when, args=(log,))
    killed.start()
    outcomes = run_alone(file)
    killed.join()
    assert {name: outcome.kind for name, outcome in outcomes.items()} == {
        "base, seed 0": "done",
        "endless, seed 0": "failed",
        "dim_8, seed 0": "done",
    }
    assert "its process died (exit code -9)" in outcomes["endless, seed 0"].reason
    assert sorted(numbers("runs/tiny")) == ["base/seed-0", "dim_8/seed-0"]


def kill_the_worker_when(log: Path) -> None:
    """Kill the process that writes into a log."""
    wait_for(lambda: log.exists() and log.stat().st_size > 0)
    for _ in range(2000):
        for child in children():
            if any(os.readlink(fd).endswith("endless-seed-0") for fd in open_files(child)):
                os.kill(child, signal.SIGKILL)
                return
        time.sleep(0.01)


def test_a_stop_is_handed_on_so_that_every_process_saves(grid_file, monkeypatch):
    stopped, stop_all = [], workers._stop
    monkeypatch.setattr(workers, "_stop", lambda started: stop_all(started) or stopped.extend(started))
    file = grid_file("seeds = [0, 1]", "")
    logs = [Path(f"runs/tiny/base/seed-{seed}/log.jsonl") for seed in (0, 1)]

    def stop() -> None:
        wait_for(lambda: all(log.exists() and log.stat().st_size > 0 for log in logs))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(Interrupted, match="stopped: finished runs are kept in runs/tiny; the same command goes on"):
        run_grid(read_grid(file, ["train.epochs=100000"]), how=HowToRun(n_processes=2))
    thread.join()
    assert not children(), "no process is left behind"
    assert [worker.process.exitcode for worker in stopped] == [0, 0], "none was killed"
    for log in logs:
        assert not record_file(log.parent).exists()
        assert (log.parent / "checkpoints/last.pt").exists()


def test_processes_that_cannot_start_are_one_error(grid_file, monkeypatch):
    monkeypatch.setattr(workers, "_work", os._exit)  # called with a pipe, which is no number
    with pytest.raises(TrainingError, match="a worker process cannot start"):
        run_alone(grid_file("seeds = 1"))


def wait_for(condition, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children() -> list[int]:
    """Return the worker processes of this process (not multiprocessing's own tracker)."""
    found = []
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        found += [int(pid) for pid in (task / "children").read_text().split()]
    return [pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def open_files(pid: int) -> list[str]:
    try:
        return [str(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return []
