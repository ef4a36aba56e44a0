"""Choosing a variant on classes held out of the training classes; test images are not touched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kinfold.comparison.compare import Row
from kinfold.config import Config
from kinfold.errors import ConfigError
from kinfold.grid.file import SELECTION, Grid
from kinfold.grid.plan import Cell
from kinfold.grid.tables import Tables

EVERY = 5
"""Every so manyeth training class is held out where the base does not say otherwise."""


@dataclass(frozen=True)
class Choice:
    """What was chosen for a data set.

    Attributes:
        winner: the variant (or `base`) with the best mean.
        metric: that decided.
        level: of the labels.
        means: by variant that was trained with every seed.
    """

    winner: str
    metric: str
    level: str
    means: Mapping[str, float]

    def __str__(self) -> str:
        listed = ", ".join(f"{name} {100 * mean:.1f}" for name, mean in self.means.items())
        return f"chosen on held-out classes of the training split by {self.metric} of {self.level}: {self.winner} ({listed})"


def selection_cells(cells: Sequence[Cell], grid: Grid, tables: Tables) -> list[Cell]:
    """Return what is trained to choose: the first seeds of each variant, the last epoch measured on held-out classes.

    Raises:
        ConfigError: early stopping or a schedule that follows validation: the runs on all classes could not do the same.
    """
    chosen = []
    for cell in cells:
        _refuse_following_validation(cell)
        n_before = sum(other.dataset == cell.dataset and other.variant == cell.variant for other in chosen)
        if n_before < grid.select_seeds:
            every = cell.config.data.hold_out_every or (None if _has_validation(cell, tables) else EVERY)
            config = _with(_last_epoch(cell.config), evaluation={"split": "val"}, data={"hold_out_every": every})
            place = Path(grid.folder) / SELECTION / cell.folder.relative_to(grid.folder)
            chosen.append(replace(cell, config=config.model_copy(update={"run": place.as_posix()})))
    return chosen


def final_cells(cells: Sequence[Cell], tables: Tables) -> list[Cell]:
    """Return what is trained on all training classes, measured at the last epoch."""
    final = []
    for cell in cells:
        config = _with(cell.config, data={"hold_out_every": None})
        final.append(replace(cell, config=_last_epoch(config) if _has_validation(cell, tables) else config))
    return final


def choose(rows: Sequence[Row], metric: str, level: str) -> Choice | None:
    """Return the variant with the best mean over seeds (the first of equals); those that lack a run are out; `None` if all are."""
    means = {row.name: row.values[metric].mean for row in rows if row.values and not row.failed}
    return Choice(max(means, key=lambda name: means[name]), metric, level, means) if means else None


def _refuse_following_validation(cell: Cell) -> None:
    train, schedule = cell.config.train, cell.config.schedule
    stages = [stage.schedule for stage in cell.config.stage.values() if stage.schedule is not None]
    if train.early_stopping_patience is not None or any(each.kind == "plateau" for each in (schedule, *stages)):
        raise ConfigError(
            f"{cell.name}: --select compares last epochs, but `train.early_stopping_patience` or `schedule.kind` = 'plateau' follow the "
            "validation: remove them, since the runs on all training classes have none."
        )


def _has_validation(cell: Cell, tables: Tables) -> bool:
    """Whether the table brings rows of split `val` of its own."""
    return "val" in tables.table(cell.config.data.model_copy(update={"hold_out_every": None})).split


def _last_epoch(config: Config) -> Config:
    """Validate once, at the end, so that the last epoch is kept."""
    return _with(config, train={"evaluate_every": max(1, config.train.epochs)})


def _with(config: Config, **changes: Mapping[str, object]) -> Config:
    return config.model_copy(update={name: getattr(config, name).model_copy(update=values) for name, values in changes.items()})
