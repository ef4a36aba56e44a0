"""`kinfold novel ratios`: one configuration with several numbers of novel classes, compared with none."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinfold.commands.output import print_json, print_table, say
from kinfold.comparison.table import CAPTION, columns_of, lines_of
from kinfold.config import put_override, read_toml
from kinfold.errors import ConfigError, TrainingError
from kinfold.grid.execute import HowToRun, run_grid
from kinfold.grid.file import Grid, grid_of
from kinfold.reports.ratio_curve import RatioPoint, draw_ratios


@dataclass(frozen=True)
class RatioOptions:
    """What can be set on the command line; texts as they were typed."""

    ratios: str = "0.5,1,2,4"
    seeds: int = 3
    metric: str = "map_at_r"
    processes: int = 1
    picture: Path | None = None

    @property
    def numbers(self) -> list[float]:
        """The ratios above 0, ascending.

        Raises:
            ConfigError: one is no number, or below 0, or none is above 0.
        """
        try:
            found = sorted({float(text) for text in self.ratios.split(",")})
        except ValueError:
            found = [-1.0]
        if found[0] < 0 or found[-1] <= 0:
            raise ConfigError(f"--ratios {self.ratios!r}: give numbers of 0 or more, such as 0.5,1,2,4.")
        return [number for number in found if number]


def ratios_novel_command(file: Path, overrides: Sequence[str], options: RatioOptions, *, as_json: bool) -> None:
    """Run what is not finished, print the table, draw the curve."""
    grid = ratio_grid(file, overrides, options)
    result = run_grid(grid, how=HowToRun(n_processes=options.processes, tell=say))
    ((_, rows),) = result.tabled
    points = [_point(row, options.metric) for row in result.values["datasets"][""]]
    if options.picture is not None:
        caption = (
            f"{file.name}: mean over {options.seeds} seeds; bars: 95 % intervals of the difference to 0 over seeds and queries."
        )
        draw_ratios(points, options.picture, metric=options.metric, caption=caption)
    if as_json:
        print_json({**result.values, "folder": grid.folder.as_posix(), "failed": result.failed})
    else:
        print_table(columns_of(result.metrics), lines_of(rows, result.metrics))
        print(f"{CAPTION}\n{grid.folder / 'table.md'}")
        if options.picture is not None:
            print(f"wrote {options.picture}")
    if result.failed:
        raise TrainingError(f"{len(result.failed)} run(s) failed; the same command tries them again: {', '.join(result.failed)}")


def ratio_grid(file: Path, overrides: Sequence[str], options: RatioOptions) -> Grid:
    """Return the grid of a configuration at each ratio; its base has no novel class.

    Raises:
        ConfigError: the configuration generates no classes.
    """
    values = read_toml(file, "a configuration such as those in experiments/")
    for override in overrides:
        put_override(values, override)
    objective = values.get("objective", {})
    if objective.get("name") != "l2a_nc" or objective.get("existing"):
        raise ConfigError(f"{file} has no novel classes to vary: set objective.name = 'l2a_nc', without objective.existing.")
    run = values.pop("run", str(Path("runs") / file.stem))
    values.pop("seed", None)
    base = {**values, "objective": {**objective, "novel_ratio": 0.0}}
    for groups in (base.get("optimizer"), *(stage.get("optimizer") for stage in base.get("stage", {}).values())):
        _without_generator(groups)
    variants: dict[str, Any] = {}
    for number in options.numbers:
        overlay = {"note": f"{100 * number:g} % novel classes", "objective": {"novel_ratio": number}}
        own = _of_generator(file, overrides)
        variants[f"ratio_{number:g}"] = {**overlay, **own}
    metrics = tuple(dict.fromkeys((options.metric, "recall_at_1", "map_at_r")))
    said = {"seeds": options.seeds, "folder": f"{run}_ratios", "metrics": metrics, "base": base, "variants": variants}
    return grid_of(said, name=f"{file.stem}_ratios")


_OWN = ("generator", "novel_proxies")


def _without_generator(optimizer: dict[str, Any] | None) -> None:
    """Take away the settings of groups that the base does not have."""
    for name in _OWN:
        (optimizer or {}).pop(name, None)


def _of_generator(file: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """Return those settings, for the variants."""
    values = read_toml(file, "a configuration")
    for override in overrides:
        put_override(values, override)
    found: dict[str, Any] = {}
    own = {name: table for name, table in values.get("optimizer", {}).items() if name in _OWN}
    if own:
        found["optimizer"] = own
    for stage, settings in values.get("stage", {}).items():
        own = {name: table for name, table in settings.get("optimizer", {}).items() if name in _OWN}
        if own:
            found.setdefault("stage", {})[stage] = {"optimizer": own}
    return found


def _point(row: dict[str, Any], metric: str) -> RatioPoint:
    value, difference = row["values"][metric]["mean"], row["differences"].get(metric)
    ratio = 0.0 if row["name"] == "base" else float(row["name"].removeprefix("ratio_"))
    interval = None if difference is None else tuple(difference["over_queries"])
    base = value if difference is None else value - difference["mean"]
    return RatioPoint(ratio, value, None if interval is None else (base + interval[0], base + interval[1]))
