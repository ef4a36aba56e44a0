"""Measured runs as they are compared: values per query, settings, and groups of runs that differ by their seed only."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinfold.comparison.identity import SEED, identity
from kinfold.comparison.per_query import PerQuery, per_query_file, read_per_query
from kinfold.comparison.record import read_record
from kinfold.engine.run import Run
from kinfold.errors import ConfigError


@dataclass(frozen=True, eq=False)
class MeasuredRun:
    """One run that was measured.

    Attributes:
        name: its folder, as it was named.
        seed: that it was trained with.
        settings: flat settings without the seed; see `identity`.
        per_query: its values.
        seconds: that it took; `None` where that is not known or counts a part only.
    """

    name: str
    seed: int
    settings: Mapping[str, Any]
    per_query: PerQuery
    seconds: float | None


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one configuration with several seeds.

    Attributes:
        name: what the table calls them.
        runs: by seed.
        note: a remark for the table.
        factor: keys that the group is meant to differ in from the base, such as `model.dim` or `model`; empty: not said.
        failed: seed → why there is no run.
    """

    name: str
    runs: Mapping[int, MeasuredRun]
    note: str = ""
    factor: tuple[str, ...] = ()
    failed: Mapping[int, str] | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that the runs share; empty without runs."""
        return next((run.settings for run in self.runs.values()), {})


def read_run(folder: Path, split: str) -> MeasuredRun:
    """Read a run folder that was measured on a split.

    Raises:
        DataError: there is no run, or it was not measured on this split.
    """
    config = Run(folder).config()
    found = identity(config)
    seed = next((int(found[key]) for key in SEED if key in found), 0)
    record = read_record(folder)
    return MeasuredRun(
        name=str(folder),
        seed=seed,
        settings={key: value for key, value in found.items() if key not in SEED},
        per_query=read_per_query(per_query_file(folder, split)),
        seconds=None if record is None or record.resumed else record.seconds,
    )


def grouped(runs: Iterable[MeasuredRun], *, factor: Sequence[str] = ()) -> list[Group]:
    """Put runs that differ by their seed only into one group; groups keep the order of their first runs.

    Raises:
        ConfigError: two runs are equal in everything, the seed included.
    """
    groups: list[list[MeasuredRun]] = []
    for run in runs:
        home = next((group for group in groups if group[0].settings == run.settings), None)
        if home is None:
            groups.append([run])
            continue
        twin = next((other for other in home if other.seed == run.seed), None)
        if twin is not None:
            raise ConfigError(
                f"{twin.name} and {run.name} have the same settings and the same seed, {run.seed}: name one of them."
            )
        home.append(run)
    names = [_name(group) for group in groups]
    if len(set(names)) < len(names):
        names = [group[0].name for group in groups]
    return [
        Group(name, {run.seed: run for run in group}, factor=tuple(factor)) for name, group in zip(names, groups, strict=True)
    ]


def _name(group: Sequence[MeasuredRun]) -> str:
    """Return the folder of one run, or the one that holds all of several."""
    parents = {str(Path(run.name).parent) for run in group}
    return parents.pop() if len(group) > 1 and len(parents) == 1 else group[0].name
