"""The run folder of a cell: new, begun or finished; or of another configuration."""

import shutil
from collections.abc import Sequence
from typing import Any, Literal

from kinfold.comparison.identity import described, differing, identity
from kinfold.comparison.record import read_record
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.grid.plan import Cell
from kinfold.grid.tables import Tables

State = Literal["new", "begun", "finished"]


def state_of(cell: Cell, tables: Tables, levels: Sequence[str]) -> State:
    """Return how far a cell is.

    Args:
        cell: the cell.
        tables: to know the images by.
        levels: that must have been measured.

    Raises:
        ConfigError: the folder holds a run of other settings, of other images, or one that was measured otherwise.
        DataError: the record is broken.
    """
    run = Run(cell.folder)
    if not run.exists:
        return "new"
    record = read_record(cell.folder)
    _check_same(cell, identity(run.config() if record is None else record.config), identity(cell.config.model_dump(mode="json")))
    if record is None:
        return "begun"
    protocol = {name: value for name, value in record.protocol.items() if name != "selection"}
    _check_same(cell, protocol, tables.protocol(cell.config, protocol.get("levels", levels)))
    missing = [level for level in levels if level not in record.metrics]
    if missing:
        raise ConfigError(
            f"{cell.folder} was not measured on the level {', '.join(missing)}: delete it to run it again, "
            "or choose another `folder` for the grid."
        )
    return "finished"


def check_cells(cells: Sequence[Cell], tables: Tables, levels: Sequence[str]) -> dict[Cell, State]:
    """Return how far each cell is, after reading the tables and finding what would fail in every cell.

    Raises:
        ConfigError: a level that a table does not have; see also `state_of`.
        DataError: a table that cannot be read, or that has no row in the split to measure.
    """
    states = {}
    for cell in cells:
        table, split = tables.table(cell.config.data), cell.config.evaluation.split
        if split not in table.split:
            raise DataError(f"{cell.name}: the table has no row in split {split!r}, so that nothing could be measured.")
        for level in levels:
            if level not in ("label", *table.levels):
                raise ConfigError(f"{cell.name}: no level {level!r}: {did_you_mean(level, ('label', *table.levels))}")
        states[cell] = state_of(cell, tables, levels)
    return states


def tidy(cell: Cell) -> None:
    """Remove the checkpoints and the model of a finished cell."""
    run = Run(cell.folder)
    for folder in (run.last.parent, run.model):
        shutil.rmtree(folder, ignore_errors=True)


def _check_same(cell: Cell, old: dict[str, Any], new: dict[str, Any]) -> None:
    keys = differing(old, new)
    if keys:
        raise ConfigError(
            f"{cell.folder} holds a run of another configuration (there and here: {described(old, new, keys)}): "
            "choose another `folder` for the grid, or delete this one to run it again."
        )
