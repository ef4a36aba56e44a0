"""What a command measures: the rows of a split, from a run's own table, from any table, or from a file of embeddings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from kinfold.build import build_table
from kinfold.commands.output import say
from kinfold.config import DataSettings
from kinfold.data.table import Table
from kinfold.embeddings import EmbeddingTable
from kinfold.errors import ConfigError, DataError
from kinfold.measure import embed_table, with_columns
from kinfold.models.embedder import Embedder


def own_table(config: Mapping[str, Any]) -> Table:
    """Return the table that a run was trained on, with the classes that it held out.

    Raises:
        ConfigError: the run was made from Python.
    """
    data = config.get("data")
    if data is None:
        raise ConfigError("this run was made from Python and does not know its table: say which images with --table.")
    return build_table(DataSettings(**data))


def rows_of_split(table: Table, split: str) -> Table:
    """Return the rows of a split.

    Raises:
        DataError: there are none.
    """
    rows = table.of_split(split)
    if not len(rows):
        raise DataError(f"the table has no row in split {split!r}: its splits are {', '.join(sorted(set(table.split)))}.")
    return rows


def embedded(embedder: Embedder, rows: Table, split: str, *, workers: int) -> EmbeddingTable:
    """Embed the rows of a split, and say so."""
    say(f"measuring on {len(rows):,} images of {rows.n_classes:,} classes ({split})")
    return with_columns(rows, embed_table(embedder, rows, workers=workers))


def embeddings_of_split(embeddings: EmbeddingTable, split: str) -> EmbeddingTable:
    """Return the rows of a split, which may be none."""
    return embeddings.subset(np.array([value == split for value in embeddings.split], dtype=bool))
