"""`kinfold evaluate`: a run, a model or a file of embeddings → scores."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinfold.commands.measured import show
from kinfold.commands.models import load_model
from kinfold.commands.output import say
from kinfold.commands.targets import embedded, embeddings_of_split, own_table, rows_of_split
from kinfold.config import EvaluationSettings
from kinfold.data.read import read_table
from kinfold.data.table import SPLITS
from kinfold.embeddings import SUFFIXES, EmbeddingTable, read_embeddings
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.evaluation.scores import Scores
from kinfold.experiment import Measuring, measure_run
from kinfold.measure import score_table
from kinfold.recipe import Recipe
from kinfold.train import feature_cache


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
        settings = EvaluationSettings(**{"split": split, **scoring})
        scores, title = evaluate_run(Run(target), settings, options, keeps=options.metrics is None), f"{target}, {split}"
    else:
        if options.table is None:
            raise ConfigError(f"{target} is a model: say which images to measure it on with --table.")
        embedder = load_model(target, size=options.size, resize=options.resize, device=options.device)
        embeddings = embedded(embedder, rows_of_split(read_table(options.table), split), split, workers=options.workers)
        scores, title = score_table(embeddings, **scoring), f"{target} on {options.table}, {split}"
    show(scores, title=title, as_json=as_json)


def evaluate_run(run: Run, settings: EvaluationSettings, options: EvaluateOptions, *, keeps: bool) -> Mapping[str, Scores]:
    """Measure a run's finished model on its own table; see `measure_run` for what is kept."""
    embedder = load_model(str(run.folder), size=options.size, resize=options.resize, device=options.device)
    config = run.config()
    table, kept = own_table(config), None
    frozen = config.get("model", {}).get("frozen")
    if frozen is not None and options.device in (None, "cpu"):
        kept = feature_cache(embedder.freeze(frozen), Recipe(cache=config["cache"]))
    rows_of_split(table, settings.split)  # or an error that names the splits
    how = Measuring(workers=options.workers, keeps=keeps, cache=kept)
    return measure_run(run, embedder, table, settings, how=how, tell=say).scores


def _embeddings(file: str, options: EvaluateOptions) -> EmbeddingTable:
    if options.table is not None or options.size is not None or options.resize is not None:
        raise ConfigError(f"{file} holds embeddings: --table, --size and --resize are for models.")
    embeddings = read_embeddings(file)
    if options.split is None:
        return embeddings
    rows = embeddings_of_split(embeddings, options.split)
    if not len(rows):
        raise DataError(f"{file} has no row in split {options.split!r}.")
    return rows


def _long_name(name: str) -> str:
    return f"{name}_at_k" if name in {"recall", "precision"} else name
