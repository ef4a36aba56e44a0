"""The file of one value per query that a measured run keeps, so that runs can be compared without their embeddings."""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.atomic import atomic_path
from kinfold.data.table import Table
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.evaluation.scores import Scores

_QUERY, _CLASS, _NAMES = "query", "class", "class_names"


@dataclass(frozen=True, eq=False)
class LevelValues:
    """The values of one level.

    Attributes:
        query: item of each scored query (its row in the table as it was read), int64.
        group: class of each scored query, as its place in `names`, int32.
        names: of the classes, as text.
        values: metric → one float32 per scored query.
    """

    query: np.ndarray
    group: np.ndarray
    names: np.ndarray
    values: Mapping[str, np.ndarray]


@dataclass(frozen=True, eq=False)
class PerQuery:
    """What a file of values per query holds.

    Attributes:
        protocol: how was measured; see `protocol_of`.
        levels: values by level.
    """

    protocol: Mapping[str, Any]
    levels: Mapping[str, LevelValues]

    def values_of(self, level: str, metric: str) -> np.ndarray:
        """Return the values of a metric.

        Raises:
            ConfigError: the level or the metric was not measured.
        """
        values = chosen(level, self.levels, "level").values
        if level != "label" and metric not in values:
            raise ConfigError(
                f"metric {metric!r} was not measured on level `{level}`, only {', '.join(values)}: choose one of these, or name it in "
                "`evaluation.coarse_metrics` and measure again."
            )
        return chosen(metric, values, "metric")


def per_query_file(folder: Path, split: str) -> Path:
    """Return where a run keeps its values of a split."""
    return folder / f"per_query_{split}.npz"


def per_query_of(scores: Mapping[str, Scores], table: Table, protocol: Mapping[str, Any]) -> PerQuery:
    """Return what is kept of an evaluation of a table's rows."""
    has_flags = table.is_query is not None and table.is_gallery is not None and table.is_query.any() and table.is_gallery.any()
    item = np.asarray(table.item)[table.is_query] if has_flags else np.asarray(table.item)
    levels = {
        name: LevelValues(
            query=item[found.query.numpy()].astype(np.int64),
            group=found.label.numpy().astype(np.int32),
            names=np.array([str(label) for label in found.class_names], dtype=np.str_),
            values={metric: value.numpy().astype(np.float32) for metric, value in found.per_query.items()},
        )
        for name, found in scores.items()
    }
    return PerQuery(protocol, levels)


def write_per_query(file: Path, kept: PerQuery) -> None:
    """Write values and protocol into one `.npz` without pickles, whole or not at all."""
    arrays = {"protocol": np.array(json.dumps(kept.protocol))}
    for level, found in kept.levels.items():
        named = {_QUERY: found.query, _CLASS: found.group, _NAMES: found.names, **found.values}
        arrays |= {f"{level}/{name}": array for name, array in named.items()}
    with atomic_path(file) as temporary, temporary.open("wb") as handle:
        np.savez_compressed(handle, **arrays)  # pyright: ignore[reportArgumentType]


def read_per_query(file: Path) -> PerQuery:
    """Read what `write_per_query` wrote.

    Raises:
        DataError: the file is missing or broken.
    """
    if not file.is_file():
        raise DataError(
            f"{file} is missing: the run was not measured on this split, or before values per query were kept; "
            "`kinfold evaluate RUN --split SPLIT` measures a run that still has its model."
        )
    try:
        with file.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        protocol = json.loads(str(arrays.pop("protocol")))
        return PerQuery(protocol, {level: _level(arrays, level) for level in protocol["levels"]})
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{file} cannot be read as values per query: {error}") from error


def chosen(name: str, known: Mapping[str, Any], kind: str) -> Any:
    """Return an entry, or an error that names the nearest one."""
    if name not in known:
        raise ConfigError(f"{kind} {name!r} was not measured: {did_you_mean(name, known)}")
    return known[name]


def _level(arrays: Mapping[str, np.ndarray], level: str) -> LevelValues:
    own = {key.rpartition("/")[2]: array for key, array in arrays.items() if key.rpartition("/")[0] == level}
    query, group, names = (own.pop(name) for name in (_QUERY, _CLASS, _NAMES))
    return LevelValues(query, group, names, own)
