"""A whole grid: choose if asked, run every cell once, compare, write the tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kinfold.comparison.record import read_record
from kinfold.errors import Interrupted, TrainingError
from kinfold.grid.file import BASE, SELECTION, Grid
from kinfold.grid.folder import State, check_cells
from kinfold.grid.plan import Cell, cells_of, check_metrics, shown_on
from kinfold.grid.report import Tabled, tables_of, write_tables
from kinfold.grid.run import CellOptions, Outcome, WatchOf, run_serially, stopping_on_terminate
from kinfold.grid.select import Choice, choose, final_cells, selection_cells
from kinfold.grid.tables import Tables
from kinfold.grid.workers import run_in_processes


@dataclass(frozen=True)
class HowToRun:
    """How a grid is run: nothing here changes a number but by rounding.

    Attributes:
        n_processes: worker processes; 1: this process, with the threads that it has.
        tell: is told in a line what goes on.
        watch_of: gives a watch for each cell, in this process only.
    """

    n_processes: int = 1
    tell: Callable[[str], None] = lambda _: None
    watch_of: WatchOf | None = None


@dataclass(frozen=True)
class GridResult:
    """What came of a grid.

    Attributes:
        tabled: rows by data set.
        metrics: that they show.
        selection: rows by data set of the selection, on held-out classes; empty without one.
        choices: by data set.
        failed: name of the cell → why.
        values: what `table.json` holds.
    """

    tabled: Tabled
    metrics: tuple[str, ...]
    selection: Tabled = field(default_factory=list)
    choices: Mapping[str, Choice] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


def run_grid(grid: Grid, *, select: str | None = None, how: HowToRun = HowToRun()) -> GridResult:
    """Run what is not finished yet and compare; the same call goes on after any interruption.

    Args:
        grid: see `read_grid`.
        select: choose a variant by this metric on held-out classes first; then only the base and the chosen one are trained on all
            training classes and measured on the split that the base names.
        how: processes, chatter.

    Raises:
        ConfigError: a cell cannot run as it is configured, or the folder holds runs of another configuration; nothing was run.
        TrainingError: every run of the selection failed.
        Interrupted: stopped; finished cells are kept, the one under way is saved.
    """
    tables, cells = Tables(), cells_of(grid)
    metrics = _metrics(grid, cells, select)
    try:
        with stopping_on_terminate():
            if select is None:
                return _compared(grid, _run(grid, cells, tables, how), metrics)
            first, final = _phases(grid, cells, tables, select)
            outcomes = _run(grid, first, tables, how)
            tabled = _tabled(grid, outcomes, metrics)
            selection = tabled[grid.levels[0]]
            choices = _choices(selection, select, grid)
            _write(grid.folder / SELECTION, grid, tabled, metrics, choices)
            for dataset, choice in choices.items():
                how.tell(f"{dataset}: {choice}".removeprefix(": "))
            wanted = [cell for cell in final if cell.variant in (BASE, choices[cell.dataset].winner)]
            return _compared(grid, _run(grid, wanted, tables, how), metrics, (selection, choices, _failed(outcomes)))
    except KeyboardInterrupt:
        raise Interrupted(f"stopped: finished runs are kept in {grid.folder}; the same command goes on from there.") from None


def plan_of(grid: Grid, *, select: str | None = None) -> list[tuple[Cell, State]]:
    """Return every cell that would be looked at, and how far it is; of a selection's second part all that could be chosen."""
    tables, cells = Tables(), cells_of(grid)
    if select is not None:
        first, final = _phases(grid, cells, tables, select)
        cells = [*first, *final]
    return list(check_cells(cells, tables, grid.levels).items())


def _phases(grid: Grid, cells: Sequence[Cell], tables: Tables, select: str) -> tuple[list[Cell], list[Cell]]:
    """Return the cells of the selection and those that may follow, all of them checked."""
    for cell in cells:
        check_metrics([select], cell.config, "--select", level=grid.levels[0])
    first, final = selection_cells(cells, grid, tables), final_cells(cells, tables)
    check_cells([*first, *final], tables, grid.levels)
    return first, final


def _run(grid: Grid, cells: Sequence[Cell], tables: Tables, how: HowToRun) -> dict[Cell, Outcome]:
    """Look at the finished cells, run those that nobody else is at, then wait for the others."""
    options = CellOptions(grid.folder, grid.levels, grid.keep_models)
    done: dict[Cell, Outcome] = {}

    def told(cell: Cell, outcome: Outcome) -> None:
        done[cell] = outcome
        n_done = sum(each.kind != "busy" for each in done.values())
        how.tell(f"[{n_done}/{len(cells)}] {cell.name}: {_line(cell, outcome, grid)}")

    states = check_cells(cells, tables, grid.levels)
    run_serially([cell for cell in cells if states[cell] == "finished"], options, tables, wait=True, told=told)
    todo, is_again = [cell for cell in cells if cell not in done], False
    while todo:
        if how.n_processes > 1:
            run_in_processes(todo, options, how.n_processes, wait_for_others=is_again, told=told)
        else:
            run_serially(todo, options, tables, wait=is_again, told=told, watch_of=how.watch_of)
        todo, is_again = [cell for cell in cells if done[cell].kind == "busy"], True
    return {cell: done[cell] for cell in cells}


def _line(cell: Cell, outcome: Outcome, grid: Grid) -> str:
    if outcome.kind == "busy":
        return "another process runs it"
    record = read_record(cell.folder) if outcome.kind != "failed" else None
    if record is None:
        return f"failed: {outcome.reason}"
    found = record.metrics[grid.levels[0]]
    numbers = ", ".join(f"{name} {100 * found[name]:.1f}" for name in grid.metrics if name in found)
    return f"{numbers} ({record.seconds:.0f} s{', before' if outcome.kind == 'finished' else ''})"


def _choices(selection: Tabled, metric: str, grid: Grid) -> dict[str, Choice]:
    choices = {}
    for dataset, rows in selection:
        choice = choose(rows, metric, grid.levels[0])
        if choice is None:
            reasons = "; ".join(f"{row.name}, seed {seed}: {reason}" for row in rows for seed, reason in row.failed.items())
            raise TrainingError(
                f"nothing can be chosen{f' for {dataset}' if dataset else ''}, every variant has a run that failed: {reasons}"
            )
        choices[dataset] = choice
    return choices


def _compared(
    grid: Grid,
    outcomes: Mapping[Cell, Outcome],
    metrics: Mapping[str, tuple[str, ...]],
    before: tuple[Tabled, Mapping[str, Choice], Mapping[str, str]] = ([], {}, {}),
) -> GridResult:
    selection, choices, failed = before
    tabled, first = _tabled(grid, outcomes, metrics), grid.levels[0]
    values = _write(grid.folder / "table", grid, tabled, metrics, choices)
    return GridResult(tabled[first], metrics[first], selection, choices, {**failed, **_failed(outcomes)}, values)


def _tabled(grid: Grid, outcomes: Mapping[Cell, Outcome], metrics: Mapping[str, Sequence[str]]) -> dict[str, Tabled]:
    return {level: tables_of(grid, outcomes, names, level) for level, names in metrics.items()}


def _write(
    file: Path,
    grid: Grid,
    tabled: Mapping[str, Tabled],
    metrics: Mapping[str, Sequence[str]],
    choices: Mapping[str, Choice],
) -> dict[str, Any]:
    """Write the tables of every level; return the values of the first."""
    values = {level: write_tables(file, grid, rows, metrics[level], choices, level) for level, rows in tabled.items()}
    return values[grid.levels[0]]


def _failed(outcomes: Mapping[Cell, Outcome]) -> dict[str, str]:
    return {cell.name: outcome.reason for cell, outcome in outcomes.items() if outcome.kind == "failed"}


def _metrics(grid: Grid, cells: Sequence[Cell], select: str | None) -> dict[str, tuple[str, ...]]:
    """Return what the tables of each level show."""
    names = grid.metrics if select is None or select in grid.metrics else (*grid.metrics, select)
    return {level: shown_on(level, names, cells) for level in grid.levels}
