"""Embeddings of a command's target: a file of them, a run on its own table, or a model on a table."""

from pathlib import Path

from kinfold.commands.models import load_model
from kinfold.commands.output import say
from kinfold.commands.targets import embedded, embeddings_of_split, own_table, rows_of_split
from kinfold.data.read import read_table
from kinfold.data.table import SPLITS, Table
from kinfold.embeddings import SUFFIXES, EmbeddingTable, read_embeddings
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.measure import embed_table, with_columns
from kinfold.recipe import Recipe
from kinfold.train import feature_cache


def embeddings_of(
    target: str, *, table: str | None = None, split: str = "train", workers: int = 0, device: str | None = None
) -> EmbeddingTable:
    """Return the embeddings of one split.

    Raises:
        ConfigError: an unknown split, or a model without a table.
        DataError: the split has no row, or there is no such file, run or model.
    """
    if split not in SPLITS:
        raise ConfigError(f"--split {split!r}: {did_you_mean(split, SPLITS)}")
    if Path(target).suffix in SUFFIXES:
        if table is not None:
            raise ConfigError(f"{target} holds embeddings: --table is for models.")
        return _of_file(target, split)
    run = Run(target)
    if table is None and not run.exists:
        raise ConfigError(f"{target} is a model: say which images to embed with --table.")
    if table is None:
        return of_run(run, own_table(run.config()), split, workers=workers, device=device)
    return embedded(load_model(target, device=device), rows_of_split(read_table(table), split), split, workers=workers)


def of_run(run: Run, table: Table, split: str, *, workers: int = 0, device: str | None = None) -> EmbeddingTable:
    """Return the embeddings of a split of a run's table: those that the run kept, else computed with its model."""
    rows, kept = rows_of_split(table, split), run.folder / f"embeddings_{split}.npz"
    if kept.is_file():
        say(f"reading {kept}")
        return read_embeddings(kept)
    embedder, cache, config = load_model(str(run.folder), device=device), None, run.config()
    frozen = config.get("model", {}).get("frozen")
    if frozen is not None and device in (None, "cpu"):
        cache = feature_cache(embedder.freeze(frozen), Recipe(cache=config["cache"]))
    say(f"embedding {len(rows):,} images of {rows.n_classes:,} classes ({split})")
    return with_columns(rows, embed_table(embedder, rows, workers=workers, cache=cache))


def _of_file(file: str, split: str) -> EmbeddingTable:
    embeddings = read_embeddings(file)
    if not embeddings.split:
        return embeddings
    rows = embeddings_of_split(embeddings, split)
    if not len(rows):
        raise DataError(f"{file} has no row in split {split!r}: it has {', '.join(sorted(set(embeddings.split)))} (--split).")
    return rows
