"""The protocol of a measurement: what must be equal before two numbers may be compared."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kinfold.comparison.identity import described, differing
from kinfold.config import EvaluationSettings
from kinfold.data.table import Table
from kinfold.errors import ConfigError

DEFINITIONS = 1
"""Version of the metrics' definitions: it rises when a metric gives another number for the same embeddings."""

LAST_EPOCH, BEST_EPOCH = "last epoch", "best epoch on validation classes"


def protocol_of(table: Table, settings: EvaluationSettings, *, levels: Iterable[str], n_evaluations: int) -> dict[str, Any]:
    """Return the protocol of measuring a model that was trained on this table.

    Rows are known by their paths below the table's root, labels and boxes, never by where the root lies.

    Args:
        table: with the splits as they were trained on.
        settings: split, cut-offs and similarity.
        levels: that were measured.
        n_evaluations: validations while training; with more than one the best epoch was kept.

    Returns:
        Plain values: `images` (rows, labels, queries and gallery), `levels`, `split`, `similarity`, `ks`, `empty`, `definitions`,
        `training` and `held_out` rows, `selection` of the epoch.
    """
    levels = tuple(levels)
    return {
        "images": rows_digest(table.of_split(settings.split), levels=levels),
        "levels": list(levels),
        "split": settings.split,
        "similarity": settings.similarity,
        "ks": list(settings.ks),
        "empty": "skip",
        "definitions": DEFINITIONS,
        "training": rows_digest(table.of_split("train")),
        "held_out": rows_digest(table.of_split("val")),
        "selection": BEST_EPOCH if n_evaluations > 1 else LAST_EPOCH,
    }


def rows_digest(table: Table, *, levels: Iterable[str] = ()) -> str:
    """Return the number of rows and a hash of their paths, labels, boxes, and of who searches whom, in order."""
    columns: list[Iterable[object]] = [_relative_paths(table), table.label]
    columns += [table.levels.get(level, ()) for level in levels if level != "label"]
    columns += [column for column in (table.boxes, _flags(table.is_query), _flags(table.is_gallery)) if column is not None]
    digest = hashlib.sha256()
    for column in columns:
        for value in column:
            digest.update(f"{type(value).__name__}\0{value}\n".encode())
        digest.update(b"\1")
    return f"{len(table)} images {digest.hexdigest()[:16]}"


def check_same_protocol(protocols: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse runs that were not measured alike.

    Args:
        protocols: by the name of the run; the first is what the others are held against.

    Raises:
        ConfigError: the first run that differs, with the keys that differ and both values.
    """
    (base, first), *others = protocols.items()
    for name, protocol in others:
        keys = differing(first, protocol)
        if keys:
            raise ConfigError(
                f"{base} and {name} cannot be compared: they differ in {described(first, protocol, keys)}. "
                "Measure both in the same way, on the same images, after training on the same images."
            )


def _relative_paths(table: Table) -> list[str]:
    root = Path(table.root).absolute()
    return [Path(path).relative_to(root).as_posix() if Path(path).is_relative_to(root) else path for path in table.path]


def _flags(column: Any) -> list[bool] | None:
    return None if column is None else column.tolist()
