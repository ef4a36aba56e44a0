"""Groups of runs → rows of a comparison: means over seeds, and paired differences to the base."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinfold.comparison.identity import differing
from kinfold.comparison.paired import Ends, paired_intervals
from kinfold.comparison.per_query import LevelValues, chosen
from kinfold.comparison.protocol import check_same_protocol
from kinfold.comparison.runs import Group
from kinfold.errors import ConfigError, DataError

UNFAIR = {
    "batches.batch_size",
    "data.crop_ratio",
    "data.size",
    "model.dim",
    "model.heads",
    "model.pretrained",
    "model.trunk",
    "train.epochs",
}
"""Settings that decide how good a model can be whatever the method: a comparison that changes them besides its factor is unfair."""


@dataclass(frozen=True)
class Value:
    """The mean of a metric over seeds, and the standard deviation over seeds (`None` for one seed)."""

    mean: float
    deviation: float | None


@dataclass(frozen=True)
class Difference:
    """A paired difference to the base.

    Attributes:
        mean: over the common seeds and all queries.
        over_queries: 95 % interval, seeds and queries drawn again; with one seed the queries alone.
        over_classes: the same with whole classes; `None` where there is one class only.
        seeds: that both sides have.
    """

    mean: float
    over_queries: Ends
    over_classes: Ends | None
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """One line of a comparison.

    Attributes:
        name: of the group.
        seeds: of its runs.
        values: by metric.
        differences: to the base, by metric; empty for the base itself.
        minutes: median of the runs that were not interrupted; `None` if there is none.
        note: a remark.
        besides: settings that make the comparison unfair → (the base's, its own).
        failed: seed → why there is no run.
    """

    name: str
    seeds: tuple[int, ...]
    values: Mapping[str, Value] = field(default_factory=dict)
    differences: Mapping[str, Difference] = field(default_factory=dict)
    minutes: float | None = None
    note: str = ""
    besides: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)


def compare(base: Group, others: Sequence[Group], *, metrics: Sequence[str], level: str = "label") -> list[Row]:
    """Return a row for the base and one for each other group.

    Seed s of a group is paired with seed s of the base, query by query.

    Args:
        base: what the others are held against; without any run the rows have no differences.
        others: may have other seeds than the base, as long as one is common.
        metrics: to compare, such as `map_at_r`.
        level: of the labels.

    Raises:
        ConfigError: the runs were not measured alike, lack the level or a metric, or have no seed in common.
    """
    runs = [run for group in (base, *others) for run in group.runs.values()]
    if runs:
        check_same_protocol({run.name: run.per_query.protocol for run in runs})
    rows = [_row(base, metrics, level)]
    for other in others:
        paired = _differences(base, other, metrics, level) if base.runs and other.runs else {}
        rows.append(_row(other, metrics, level, differences=paired, besides=_besides(base, other)))
    return rows


def _row(group: Group, metrics: Sequence[str], level: str, **more: Any) -> Row:
    seconds = [run.seconds for run in group.runs.values() if run.seconds is not None]
    return Row(
        name=group.name,
        seeds=tuple(group.runs),
        values={metric: _value(group, metric, level) for metric in metrics} if group.runs else {},
        minutes=float(np.median(seconds)) / 60 if seconds else None,
        note=group.note,
        failed=dict(group.failed or {}),
        **more,
    )


def _value(group: Group, metric: str, level: str) -> Value:
    means = [float(run.per_query.values_of(level, metric).mean(dtype=np.float64)) for run in group.runs.values()]
    return Value(float(np.mean(means)), float(np.std(means, ddof=1)) if len(means) > 1 else None)


def _differences(base: Group, other: Group, metrics: Sequence[str], level: str) -> dict[str, Difference]:
    seeds = tuple(seed for seed in other.runs if seed in base.runs)
    if not seeds and (base.failed or other.failed):
        return {}
    if not seeds:
        raise ConfigError(
            f"{base.name} and {other.name} have no seed in common ({_listed(base.runs)} and {_listed(other.runs)}): "
            "differences are paired by seed, train one of them with a seed of the other."
        )
    first = _level_of(base, seeds[0], level)
    for group in (base, other):
        for seed in seeds:
            _check_same_queries(first, _level_of(group, seed, level), f"{base.name} and {group.name}")
    values = [
        [[group.runs[seed].per_query.values_of(level, metric) for seed in seeds] for metric in metrics] for group in (base, other)
    ]
    difference = np.array(values[1], dtype=np.float64) - np.array(values[0], dtype=np.float64)
    over_queries = paired_intervals(difference, first.group)
    has_classes = len(np.unique(first.group)) > 1
    over_classes = paired_intervals(difference, first.group, over="class") if has_classes else [None] * len(metrics)
    return {
        metric: Difference(float(difference[m].mean()), over_queries[m], over_classes[m], seeds)
        for m, metric in enumerate(metrics)
    }


def _level_of(group: Group, seed: int, level: str) -> LevelValues:
    return chosen(level, group.runs[seed].per_query.levels, "level")


def _check_same_queries(one: LevelValues, other: LevelValues, names: str) -> None:
    """Refuse what the protocol should have refused before."""
    if not (np.array_equal(one.query, other.query) and np.array_equal(one.names[one.group], other.names[other.group])):
        raise DataError(
            f"{names} did not score the same queries with the same labels: measure both again with `kinfold evaluate`."
        )


def _besides(base: Group, other: Group) -> dict[str, tuple[Any, Any]]:
    """Return what makes the comparison unfair: not the factor that is named, nor the one setting that differs if it is the only one."""
    if not (base.runs and other.runs):
        return {}
    keys = differing(base.settings, other.settings)
    if len(keys) == 1:
        return {}
    named = {key for key in keys if any(key == name or key.startswith(f"{name}.") for name in other.factor)}
    return {key: (base.settings.get(key), other.settings.get(key)) for key in keys if key in UNFAIR and key not in named}


def _listed(runs: Mapping[int, object]) -> str:
    return ", ".join(map(str, runs))
