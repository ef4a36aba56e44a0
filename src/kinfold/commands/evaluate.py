"""`kinfold evaluate`: a run, a model or a file of embeddings → scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinfold.commands.measured import record, show
from kinfold.commands.models import is_run, load_model
from kinfold.commands.output import say
from kinfold.data.read import read_table
from kinfold.data.splits import hold_out_classes
from kinfold.data.table import SPLITS, Table
from kinfold.embeddings import SUFFIXES, EmbeddingTable, read_embeddings
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.evaluation.scores import Scores
from kinfold.measure import embed_table, score_table, with_columns


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

    @property
    def scoring(self) -> dict[str, Any]:
        """The arguments of `score_table`."""
        try:
            ks = tuple(int(k) for k in self.ks.split(","))
        except ValueError:
            raise ConfigError(f"--ks {self.ks!r}: give whole numbers, such as 1,2,4,8.") from None
        names = None if self.metrics is None else tuple(_long_name(name.strip()) for name in self.metrics.split(","))
        return {"ks": ks, "metrics": names, "similarity": self.similarity, "memory": self.memory}


def evaluate_command(target: str, options: EvaluateOptions, *, as_json: bool) -> None:
    """Print the scores, and keep them in the run folder if the target is a run."""
    scoring = options.scoring
    if options.split is not None and options.split not in SPLITS:
        raise ConfigError(f"--split {options.split!r}: {did_you_mean(options.split, SPLITS)}")
    if Path(target).suffix in SUFFIXES:
        embeddings = read_embeddings(target)
        if options.split is not None:
            embeddings = _of_split(embeddings, options.split)
        show(score_table(embeddings, **scoring), title=target, as_json=as_json)
        return
    split = options.split or "test"
    if is_run(target):
        scores = evaluate_run(Run(target), split, scoring, table=options.table)
    else:
        if options.table is None:
            raise ConfigError(f"{target} is a model: say which images to measure it on with --table.")
        embedder = load_model(target, size=options.size, resize=options.resize)
        rows = _rows(read_table(options.table), split)
        say(f"{len(rows):,} images of {rows.n_classes:,} classes ({split})")
        scores = score_table(with_columns(rows, embed_table(embedder, rows).embedding), **scoring)
    show(scores, title=f"{target}, {split}", as_json=as_json)


def evaluate_run(run: Run, split: str, scoring: Mapping[str, Any], *, table: str | None = None) -> dict[str, Scores]:
    """Embed a split with a run's finished model; write `embeddings_<split>.npz` and the scores into the run folder."""
    config = run.config()
    rows = _rows(_table_of(config, table), split)
    embedder = load_model(str(run.folder))
    say(f"measuring on {len(rows):,} images of {rows.n_classes:,} classes ({split})")
    embeddings = with_columns(rows, embed_table(embedder, rows).embedding)
    embeddings.save(run.folder / f"embeddings_{split}.npz")
    scores = score_table(embeddings, **scoring)
    run.write_metrics(split, record(scores, fingerprint=embedder.fingerprint()))
    return scores


def _table_of(config: Mapping[str, Any], table: str | None) -> Table:
    if table is not None:
        return read_table(table)
    data = config.get("data")
    if data is None:
        raise ConfigError("this run was made from Python and does not know its table: say which images with --table.")
    found = read_table(data["root"])
    return hold_out_classes(found, every=data["hold_out_every"]) if data["hold_out_every"] else found


def _rows(table: Table, split: str) -> Table:
    rows = table.of_split(split)
    if not len(rows):
        raise DataError(f"the table has no row in split {split!r}: its splits are {', '.join(sorted(set(table.split)))}.")
    return rows


def _of_split(embeddings: EmbeddingTable, split: str) -> EmbeddingTable:
    import numpy as np

    rows = np.array([value == split for value in embeddings.split], dtype=bool)
    if not rows.any():
        raise DataError(f"the file has no row in split {split!r}.")
    return embeddings.subset(rows)


def _long_name(name: str) -> str:
    return f"{name}_at_k" if name in {"recall", "precision"} else name
