"""`kinfold grid`: a grid file → its runs, once each, and a table that compares them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kinfold.commands.output import print_json, print_table, say
from kinfold.comparison.table import CAPTION, columns_of, lines_of, remarks_of
from kinfold.console import ConsoleWatch
from kinfold.engine.watch import Watch
from kinfold.errors import TrainingError
from kinfold.grid.execute import GridResult, HowToRun, plan_of, run_grid
from kinfold.grid.file import Grid, read_grid
from kinfold.grid.plan import Cell
from kinfold.grid.report import Tabled


@dataclass(frozen=True)
class GridOptions:
    """What can be set on the command line."""

    processes: int = 1
    select: str | None = None
    level: str | None = None
    dry_run: bool = False
    as_json: bool = False


def grid_command(file: Path, overrides: Sequence[str], options: GridOptions) -> None:
    """Run what is not finished, print the table; fail at the end if a run failed."""
    grid = read_grid(file, overrides, levels=[] if options.level is None else [options.level])
    if options.dry_run:
        _show_plan(grid, options)
        return
    how = HowToRun(n_processes=options.processes, tell=say, watch_of=_watch_of)
    result = run_grid(grid, select=options.select, how=how)
    if options.as_json:
        print_json({**result.values, "folder": grid.folder.as_posix(), "failed": result.failed})
    else:
        _show(grid, result)
    if result.failed:
        listed = "; ".join(f"{name}: {reason}" for name, reason in result.failed.items())
        raise TrainingError(f"{len(result.failed)} run(s) failed; the same command tries them again. {listed}")


def _show(grid: Grid, result: GridResult) -> None:
    if result.selection:
        _show_tables(result.selection, result.metrics, kind="held-out classes")
        for dataset, choice in result.choices.items():
            print(f"{dataset}: {choice}\n".removeprefix(": "))
    _show_tables(result.tabled, result.metrics)
    print(f"{CAPTION} Level: {grid.levels[0]}.\n{grid.folder / 'table.md'}")


def _show_tables(tabled: Tabled, metrics: Sequence[str], kind: str = "") -> None:
    for dataset, rows in tabled:
        title = ", ".join(part for part in (dataset, kind) if part)
        print_table(columns_of(metrics), lines_of(rows, metrics), title=title)
        for remark in remarks_of(rows):
            print(remark)
        print()


def _show_plan(grid: Grid, options: GridOptions) -> None:
    planned = plan_of(grid, select=options.select)
    if options.as_json:
        print_json([{"name": cell.name, "folder": cell.folder.as_posix(), "state": state} for cell, state in planned])
        return
    print_table(["run", "folder", ""], [[cell.name, cell.folder.as_posix(), state] for cell, state in planned], numbers=False)
    n_finished = sum(state == "finished" for _, state in planned)
    chosen = " (of the last part only the base and the chosen variant)" if options.select else ""
    print(f"{len(planned)} runs{chosen}, {n_finished} finished")


@contextmanager
def _watch_of(cell: Cell) -> Iterator[Watch | None]:
    """Show a progress line on a terminal; elsewhere a line for each cell is enough."""
    with ConsoleWatch(cell.config.train.epochs) as watch:
        yield watch if watch.console.is_terminal else None
