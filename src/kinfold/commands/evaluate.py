"""`kinfold evaluate`: a run, a model or a file of embeddings → scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.build import build_table
from kinfold.commands.measured import record, show
from kinfold.commands.models import load_model
from kinfold.commands.output import say
from kinfold.config import DataSettings
from kinfold.data.read import read_table
from kinfold.data.table import SPLITS, Table
from kinfold.embeddings import SUFFIXES, EmbeddingTable, read_embeddings
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.evaluation.scores import Scores
from kinfold.measure import embed_table, score_table, with_columns
from kinfold.models.embedder import Embedder


@dataclass(frozen=True)
class EvaluateOptions:
    """What can be set on the command line; texts as they were typed."""

    table: str | None = None
    split: str | None = None
    ks: str = "1,2,4,8"
    metrics: str | None = None
    similarity: str = "cosine"
    memory: str = "512MB"
    size: int | None = None
    resize: Any = None
    workers: int = 0
    device: str | None = None

    @property
    def scoring(self) -> dict[str, Any]:
        """The arguments of `score_table`."""
        try:
            ks = tuple(int(k) for k in self.ks.split(","))
        except ValueError:
            raise ConfigError(f"--ks {self.ks!r}: give whole numbers, such as 1,2,4,8.") from None
        names = None if self.metrics is None else tuple(_long_name(name.strip()) for name in self.metrics.split(","))
        return {"ks": ks, "metrics": names, "similarity": self.similarity, "memory": self.memory}

    def check(self) -> None:
        """Refuse a split that does not exist."""
        if self.split is not None and self.split not in SPLITS:
            raise ConfigError(f"--split {self.split!r}: {did_you_mean(self.split, SPLITS)}")


def evaluate_command(target: str, options: EvaluateOptions, *, as_json: bool) -> None:
    """Print the scores; a run measured on its own table keeps them, with the embeddings."""
    options.check()
    scoring, split = options.scoring, options.split or "test"
    if Path(target).suffix in SUFFIXES:
        scores, title = score_table(_embeddings(target, options), **scoring), target
    elif Run(target).exists and options.table is None:
        keeps = options.metrics is None
        scores, title = evaluate_run(Run(target), split, scoring, options=options, keeps=keeps), f"{target}, {split}"
    else:
        if options.table is None:
            raise ConfigError(f"{target} is a model: say which images to measure it on with --table.")
        embedder = load_model(target, size=options.size, resize=options.resize, device=options.device)
        embeddings = _embedded(embedder, _rows(read_table(options.table), split), split, workers=options.workers)
        scores, title = score_table(embeddings, **scoring), f"{target} on {options.table}, {split}"
    show(scores, title=title, as_json=as_json)


def evaluate_run(
    run: Run, split: str, scoring: Mapping[str, Any], *, options: EvaluateOptions | None = None, keeps: bool = True
) -> dict[str, Scores]:
    """Measure a run's finished model on its own table; keep `embeddings_<split>.npz`, and the scores under `split` in metrics.json."""
    options = options or EvaluateOptions()
    config = run.config()
    embedder = load_model(str(run.folder), size=options.size, resize=options.resize, device=options.device)
    embeddings = _embedded(embedder, _rows(_own_table(config), split), split, workers=options.workers)
    scores = score_table(embeddings, **scoring)
    if keeps:
        embeddings.save(run.folder / f"embeddings_{split}.npz")
        run.write_metrics(split, record(scores, fingerprint=embedder.fingerprint()))
    return scores


def _embedded(embedder: Embedder, rows: Table, split: str, *, workers: int) -> EmbeddingTable:
    say(f"measuring on {len(rows):,} images of {rows.n_classes:,} classes ({split})")
    return with_columns(rows, embed_table(embedder, rows, workers=workers))


def _embeddings(file: str, options: EvaluateOptions) -> EmbeddingTable:
    if options.table is not None or options.size is not None or options.resize is not None:
        raise ConfigError(f"{file} holds embeddings: --table, --size and --resize are for models.")
    embeddings = read_embeddings(file)
    if options.split is None:
        return embeddings
    rows = np.array([value == options.split for value in embeddings.split], dtype=bool)
    if not rows.any():
        raise DataError(f"{file} has no row in split {options.split!r}.")
    return embeddings.subset(rows)


def _own_table(config: Mapping[str, Any]) -> Table:
    data = config.get("data")
    if data is None:
        raise ConfigError("this run was made from Python and does not know its table: say which images with --table.")
    return build_table(DataSettings(**data))


def _rows(table: Table, split: str) -> Table:
    rows = table.of_split(split)
    if not len(rows):
        raise DataError(f"the table has no row in split {split!r}: its splits are {', '.join(sorted(set(table.split)))}.")
    return rows


def _long_name(name: str) -> str:
    return f"{name}_at_k" if name in {"recall", "precision"} else name
