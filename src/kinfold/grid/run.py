"""One cell after another: each is run once, whoever asks for it, and one that fails does not stop the others."""

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from kinfold.atomic import write_text
from kinfold.engine.watch import Watch
from kinfold.errors import Interrupted, KinfoldError
from kinfold.experiment import run_experiment
from kinfold.grid.folder import state_of, tidy
from kinfold.grid.plan import Cell
from kinfold.grid.tables import Tables
from kinfold.lock import claim

WatchOf = Callable[[Cell], AbstractContextManager[Watch | None]]
Told = Callable[[Cell, "Outcome"], None]


@dataclass(frozen=True)
class CellOptions:
    """What holds for every cell of a grid.

    Attributes:
        folder: of the grid.
        levels: that are measured.
        keep_models: keep weights and checkpoints.
    """

    folder: Path
    levels: tuple[str, ...]
    keep_models: bool


class Outcome(NamedTuple):
    """What became of a cell: `done` now, `finished` before, `busy` (another process runs it) or `failed`, with the reason."""

    kind: Literal["done", "finished", "busy", "failed"]
    reason: str = ""


def run_serially(
    cells: Sequence[Cell], options: CellOptions, tables: Tables, *, wait: bool, told: Told, watch_of: WatchOf | None = None
) -> dict[Cell, Outcome]:
    """Run cells in this process, one after another; see `run_cell`."""
    outcomes = {}
    for cell in cells:
        with nullcontext() if watch_of is None else watch_of(cell) as watch:
            outcomes[cell] = run_cell(cell, options, tables, wait=wait, watch=watch)
        told(cell, outcomes[cell])
    return outcomes


def run_cell(cell: Cell, options: CellOptions, tables: Tables, *, wait: bool, watch: Watch | None = None) -> Outcome:
    """Run a cell unless it is finished, or go on where it stands.

    Whatever goes wrong inside is its outcome; the traceback lies in `errors/` of the grid's folder.

    Args:
        cell: the cell.
        options: of the grid.
        tables: that were read already.
        wait: for another process that runs this cell; otherwise it is `busy`.
        watch: is told of every update.

    Raises:
        Interrupted, KeyboardInterrupt: stopped; what was trained is saved.
    """
    errors = options.folder / "errors" / f"{_file_name(cell)}.txt"
    with claim(options.folder / ".locks" / _file_name(cell), wait=wait) as is_mine:
        if not is_mine:
            return Outcome("busy")
        try:
            was_finished = state_of(cell, tables, options.levels) == "finished"
            if not was_finished:
                _run(cell, options, tables, watch)
        except Interrupted:
            raise
        except Exception as error:
            write_text(errors, traceback.format_exc())
            return Outcome("failed", _reason(error))
        errors.unlink(missing_ok=True)
        if not options.keep_models:
            tidy(cell)
        return Outcome("finished" if was_finished else "done")


@contextmanager
def stopping_on_terminate() -> Iterator[None]:
    """Take SIGTERM for Ctrl-C inside the block, in the main thread."""
    import signal
    import threading

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(cell: Cell, options: CellOptions, tables: Tables, watch: Watch | None) -> None:
    run_experiment(cell.config, table=tables.table(cell.config.data), watch=watch, levels=options.levels)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()) or "no message"
    return text if isinstance(error, KinfoldError) else f"{type(error).__name__}: {text}"


def _file_name(cell: Cell) -> str:
    phase = (cell.config.evaluation.split,) if cell.config.evaluation.split != "test" else ()
    return "-".join((*phase, *([cell.dataset] if cell.dataset else []), cell.variant, f"seed-{cell.seed}"))
