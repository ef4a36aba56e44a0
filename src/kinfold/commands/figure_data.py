"""What figures are made from: embeddings of the same images by one model or more, with their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.commands.embeddings_of import embeddings_of
from kinfold.commands.output import say
from kinfold.commands.targets import own_table
from kinfold.data.read import read_table
from kinfold.data.table import Table
from kinfold.embeddings import SUFFIXES, EmbeddingTable, Name
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, did_you_mean
from kinfold.evaluation.outside import OutsideShare, outside_share
from kinfold.measure import score_table

N_OUTSIDE = 10
"""Neighbours outside the own class that the number of a map looks at."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Embeddings of the same rows.

    Attributes:
        names: of the models, base first.
        embeddings: of each model.
        level: of the super-categories; `None` where the table has none.
        table: with the images, where there is one.
    """

    names: tuple[str, ...]
    embeddings: tuple[EmbeddingTable, ...]
    level: str | None
    table: Table | None

    @property
    def rows(self) -> EmbeddingTable:
        """The columns that all share."""
        return self.embeddings[0]

    @property
    def category(self) -> tuple[Name, ...]:
        """The super-category of each row; its class where there are none."""
        return self.rows.label if self.level is None else self.rows.levels[self.level]


def read_compared(
    targets: Sequence[str], *, split: str, level: str | None, table: str | None, workers: int, device: str | None
) -> Compared:
    """Read or compute the embeddings of every target.

    Raises:
        ConfigError: targets measured on different images, an unknown level or split, or a model without a table.
        DataError: a run with neither embeddings nor a finished model.
    """
    if len(set(targets)) < len(targets):
        raise ConfigError("a run is named twice: name each once, the base first.")
    found = [
        embeddings_of(
            target, table=None if Path(target).suffix in SUFFIXES else table, split=split, workers=workers, device=device
        )
        for target in targets
    ]
    for target, other in zip(targets[1:], found[1:], strict=True):
        _check_same_rows(targets[0], found[0], target, other)
    return Compared(short_names(targets), tuple(found), _level(found[0], level), _table(targets, table))


def numbers_of(data: Compared) -> list[dict[str, Any]]:
    """Return, for each model, the share of neighbours outside the own class in the same super-category, its chance, and recall."""
    lines = []
    for name, embeddings in zip(data.names, data.embeddings, strict=True):
        levels = {} if data.level is None else {data.level: embeddings.levels[data.level]}
        only = replace(embeddings, levels=levels)
        recall = {level: scores.metrics["recall_at_1"] for level, scores in score_table(only, metrics=["recall_at_1"]).items()}
        line: dict[str, Any] = {"name": name, "recall_at_1": recall}
        if data.level is not None:
            found = _outside(embeddings, data.level)
            line |= {"outside_share": found.share, "outside_chance": found.chance}
        lines.append(line)
    return lines


def _outside(rows: EmbeddingTable, level: str) -> OutsideShare:
    columns = rows.embedding, np.array(rows.label, dtype=object), np.array(rows.levels[level], dtype=object)
    if not rows.sides:
        return outside_share(*columns, k=N_OUTSIDE)
    query, gallery = ([column[side] for column in columns] for side in (rows.sides["is_query"], rows.sides["is_gallery"]))
    names = ("gallery", "gallery_label", "gallery_group")
    return outside_share(*query, k=N_OUTSIDE, **dict(zip(names, gallery, strict=True)))


def _check_same_rows(base: str, first: EmbeddingTable, name: str, other: EmbeddingTable) -> None:
    """Refuse targets that were not measured on the same images."""
    columns = {
        "the number of images": (len(first), len(other)),
        "the images": (_file_names(first), _file_names(other)) if first.path and other.path else ((), ()),
        "their classes": (first.label, other.label),
        "their coarser levels": (dict(first.levels), dict(other.levels)),
        "who asks and who can be found": (_plain(first.sides), _plain(other.sides)),
    }
    for what, (one, two) in columns.items():
        if one != two:
            raise ConfigError(
                f"{base} ({len(first):,} images) and {name} ({len(other):,}) were measured on different test sets: {what} differ. "
                "Figures compare models on the same images only: measure both on the same table and split."
            )


def _file_names(rows: EmbeddingTable) -> list[str]:
    return [Path(path).name for path in rows.path]


def _plain(sides: dict[str, np.ndarray]) -> dict[str, list[bool]]:
    return {name: mask.tolist() for name, mask in sides.items()}


def _level(rows: EmbeddingTable, level: str | None) -> str | None:
    if level is not None and level not in rows.levels:
        known = did_you_mean(level, rows.levels) if rows.levels else "the table has no coarser level."
        raise ConfigError(f"--level {level!r}: {known}")
    if not rows.levels:
        say("the table has no coarser level than the class: colours and frames go by class alone, without outlines")
        return None
    return level or next(iter(rows.levels))


def _table(targets: Sequence[str], table: str | None) -> Table | None:
    """Return the table that the images are in: the one named, or the first run's that knows its own."""
    if table is not None:
        return read_table(table)
    configs = [Run(target).config() for target in targets if Run(target).exists]
    return next((own_table(config) for config in configs if "data" in config), None)


def short_names(targets: Sequence[str]) -> tuple[str, ...]:
    """Return the last part of each target or, where two would be alike, the parts in which they differ.

    Example:
        >>> short_names(["runs/base", "runs/hpl"]), short_names(["runs/cub/base/seed-0", "runs/cub/hpl/seed-0"])
        (('base', 'hpl'), ('base', 'hpl'))
    """
    parts = [(*Path(target).parts[:-1], _stem(target)) for target in targets]
    short = tuple(each[-1] for each in parts)
    if len(set(short)) == len(short):
        return short
    if len({len(each) for each in parts}) == 1:
        differing = [place for place in range(len(parts[0])) if len({each[place] for each in parts}) > 1]
        apart = tuple("/".join(each[place] for place in differing) for each in parts)
        if len(set(apart)) == len(apart):
            return apart
    return tuple(targets)


def _stem(target: str) -> str:
    return Path(target).stem if Path(target).suffix in SUFFIXES else Path(target).name
