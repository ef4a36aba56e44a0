"""A grid file: a base configuration, variants that change one factor each, data sets, seeds."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from kinfold.config import put_override, read_toml
from kinfold.errors import ConfigError
from kinfold.settings import Settings

BASE, SELECTION = "base", "selection"
_NAME = re.compile(r"\w[\w.+-]*")


class GridFile(Settings):
    """What a grid file may hold.

    Attributes:
        seeds: how many, counted from 0, or which.
        folder: of all runs and tables; by default `runs/` and the file's name.
        metrics: that the tables show.
        levels: of the labels that are measured, a table for each; coarse ones cost many times the time of `label`, unless
            `evaluation.coarse_metrics` asks for less.
        select_seeds: how many of the seeds the selection trains.
        keep_models: keep weights and checkpoints of finished runs.
        base: a configuration as `kinfold train` reads it, without `run` and `seed`.
        datasets: overlays on the base that make one section of the table each.
        variants: overlays on the base, one factor each; `seeds` and `note` are the variant's own.
    """

    seeds: int | tuple[int, ...] = 3
    folder: str | None = None
    metrics: tuple[str, ...] = Field(default=("recall_at_1", "map_at_r"), min_length=1)
    levels: tuple[str, ...] = Field(default=("label",), min_length=1)
    select_seeds: int = Field(default=3, ge=1)
    keep_models: bool = False
    base: dict[str, Any] = Field(default_factory=dict)
    datasets: dict[str, dict[str, Any]] = Field(default_factory=dict)
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Variant:
    """One line of the table: the base, or an overlay on it.

    Attributes:
        name: `base`, or as the file names it.
        overlay: what it changes.
        seeds: that it is trained with.
        note: a remark for the table.
    """

    name: str
    overlay: Mapping[str, Any]
    seeds: tuple[int, ...]
    note: str = ""


@dataclass(frozen=True)
class Grid:
    """A grid file that was read and checked.

    Attributes:
        name: of the file.
        folder: of all runs and tables.
        metrics: that the tables show.
        levels: that are measured.
        select_seeds: how many seeds the selection trains.
        keep_models: keep weights and checkpoints.
        base: the configuration that everything starts from.
        datasets: overlays by name; one without a name where the file has none.
        variants: the base first.
    """

    name: str
    folder: Path
    metrics: tuple[str, ...]
    levels: tuple[str, ...]
    select_seeds: int
    keep_models: bool
    base: Mapping[str, Any]
    datasets: Mapping[str, Mapping[str, Any]]
    variants: Sequence[Variant]


def read_grid(file: str | Path, overrides: Iterable[str] = (), *, levels: Sequence[str] = ()) -> Grid:
    """Read a grid file and put `key=value` overrides over its base.

    Args:
        file: a TOML file.
        overrides: such as `train.epochs=3`.
        levels: to measure besides the file's; the tables show the first of them.

    Raises:
        ConfigError: no such file, not TOML, an unknown key, a name that cannot be a folder, seeds that are none or twice.
    """
    file = Path(file)
    values = read_toml(file, "a grid, see docs/grids.md")
    for override in overrides:
        put_override(values.setdefault("base", {}), override)
    return grid_of(values, name=file.stem, levels=levels)


def grid_of(values: Mapping[str, Any], *, name: str, levels: Sequence[str] = ()) -> Grid:
    """Return the grid that a file of these values describes; see `read_grid`.

    Args:
        values: as `GridFile` takes them.
        name: of the grid, and of its folder below `runs/` where the values name none.
        levels: to measure besides the file's.
    """
    found = GridFile(**values)
    for kind, names in (("dataset", found.datasets), ("variant", found.variants)):
        for each in names:
            _check_name(kind, each)
    seeds = _seeds(found.seeds, "`seeds`")
    return Grid(
        name=name,
        folder=Path(found.folder or Path("runs") / name),
        metrics=found.metrics,
        levels=tuple(dict.fromkeys((*levels, *found.levels))),
        select_seeds=found.select_seeds,
        keep_models=found.keep_models,
        base=_without_words_for_none(found.base),
        datasets={each: _without_words_for_none(overlay) for each, overlay in (found.datasets or {"": {}}).items()},
        variants=[Variant(BASE, {}, seeds), *(_variant(each, overlay, seeds) for each, overlay in found.variants.items())],
    )


def _variant(name: str, values: dict[str, Any], seeds: tuple[int, ...]) -> Variant:
    overlay = _without_words_for_none({key: value for key, value in values.items() if key not in ("seeds", "note")})
    note = values.get("note", "")
    if not isinstance(note, str):
        raise ConfigError(f"variant `{name}`: `note` = {note!r} must be text.")
    own = _seeds(values["seeds"], f"variant `{name}`: `seeds`") if "seeds" in values else seeds
    if not set(own) & set(seeds):
        raise ConfigError(
            f"variant `{name}` has no seed in common with the base ({list(own)} and {list(seeds)}): differences are paired by seed."
        )
    return Variant(name, overlay, own, note)


def _seeds(value: Any, where: str) -> tuple[int, ...]:
    listed = list(range(value)) if _is_whole(value) else value
    seeds = tuple(listed) if isinstance(listed, list | tuple) else ()
    if not seeds or not all(_is_whole(seed) and seed >= 0 for seed in seeds) or len(set(seeds)) < len(seeds):
        raise ConfigError(f"{where} = {value!r}: give a number of seeds above 0, or a list of distinct whole numbers from 0.")
    return seeds


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_name(kind: str, name: str) -> None:
    if name == BASE and kind == "variant":
        raise ConfigError("a variant cannot be named `base`: that is the name of [base] itself.")
    if name == SELECTION or not _NAME.fullmatch(name):
        raise ConfigError(
            f"a {kind} cannot be named {name!r}: its runs get a folder of this name; use letters, digits, _, -, . and +."
        )


def _without_words_for_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """Read the text `none` as no value, as overrides do: TOML has no word for it."""
    return {key: _without_words_for_none(value) if isinstance(value, dict) else _none(value) for key, value in values.items()}


def _none(value: Any) -> Any:
    return None if isinstance(value, str) and value.lower() in {"none", "null"} else value
