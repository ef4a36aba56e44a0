"""One experiment: a configuration → a trained model, measured and recorded in its run folder."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kinfold.build import build_embedder, build_table
from kinfold.build_objective import build_objective
from kinfold.comparison.identity import identity_hash
from kinfold.comparison.per_query import chosen, per_query_file, per_query_of, write_per_query
from kinfold.comparison.protocol import protocol_of
from kinfold.comparison.record import Record, read_record, write_record
from kinfold.config import Config, EvaluationSettings
from kinfold.data.table import Table
from kinfold.engine.run import Run
from kinfold.engine.watch import Watch
from kinfold.evaluation.memory import bytes_of
from kinfold.evaluation.metric_names import metrics_of
from kinfold.evaluation.scores import Scores
from kinfold.evaluation.spaces import function_of
from kinfold.evaluation.summary import plain, summary
from kinfold.head_start import start_head
from kinfold.measure import embed_table, score_table, with_columns
from kinfold.models.embedder import Embedder
from kinfold.models.feature_cache import FeatureCache
from kinfold.train import Trained, any_feature_cache, feature_cache, fit

Tell = Callable[[str], None]
SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True)
class Experiment:
    """A finished experiment.

    Attributes:
        run: its folder.
        n_steps: updates.
        scores: by level; empty where nothing was to be measured.
    """

    run: Run
    n_steps: int
    scores: Mapping[str, Scores]


@dataclass(frozen=True)
class Measuring:
    """How a model is measured beside what its configuration says.

    Attributes:
        levels: of the labels to score; `None`: all. Coarse levels cost many times the time of `label`.
        workers: processes that load images.
        keeps: write the scores, the values per query and (`evaluation.keep_embeddings`) the embeddings into the run folder.
        cache: where outputs of the model's frozen part are kept.
    """

    levels: Sequence[str] | None = None
    workers: int = 0
    keeps: bool = True
    cache: FeatureCache | None = None


class Measured(NamedTuple):
    """The scores of a run by level, and the protocol that they belong to."""

    scores: Mapping[str, Scores]
    protocol: Mapping[str, Any]


def run_experiment(
    config: Config,
    *,
    table: Table | None = None,
    watch: Watch | None = None,
    levels: Sequence[str] | None = None,
    tell: Tell = lambda _: None,
) -> Experiment:
    """Train what a configuration describes, or go on where its run folder stands; measure the finished model and record it.

    Args:
        config: everything; `config.run` is the folder.
        table: what `build_table(config.data)` gives, if it is there already.
        watch: is told of every update.
        levels: to measure; `None`: what the configuration says.
        tell: is told in a line what goes on.

    Raises:
        ConfigError: an unknown name, or settings that contradict each other or the run in the folder.
        DataError: images, classes or splits that cannot be used.
        Interrupted: stopped and saved; the same call goes on.
    """
    check_evaluation(config.evaluation)
    begin, resumed = time.perf_counter(), Run(config.run).last.exists()
    table = build_table(config.data) if table is None else table
    levels = config.evaluation.levels if levels is None else levels
    _levels(table, levels)  # a misspelt one is found before training
    trained = train_experiment(config, table, watch=watch, tell=tell)
    settings, found = config.evaluation, Measured({}, {})
    if settings.after_training and len(table.split_rows(settings.split)):
        kept = feature_cache(trained.embedder, config.recipe, progress=_telling(tell))
        how = Measuring(levels=levels, workers=config.batches.workers, cache=kept)
        found = measure_run(trained.run, trained.embedder, table, settings, how=how, tell=tell)
    dumped = config.model_dump(mode="json")
    record = Record(
        identity=identity_hash(dumped),
        config=dumped,
        split=settings.split,
        protocol=found.protocol,
        metrics=plain(found.scores),
        seconds=time.perf_counter() - begin,
        resumed=resumed,
        n_steps=trained.progress.step,
    )
    write_record(trained.run.folder, _with_first_time(record, trained.run))
    return Experiment(trained.run, trained.progress.step, found.scores)


def train_experiment(config: Config, table: Table, *, watch: Watch | None = None, tell: Tell = lambda _: None) -> Trained:
    """Build model and objective and train them, or go on where the run folder stands; measure nothing."""
    embedder, recipe, train = build_embedder(config), config.recipe, table.of_split("train")
    if config.model.head_start != "random" and not Run(config.run).last.exists():
        kept = any_feature_cache(recipe, progress=_telling(tell))
        left_out = {} if recipe.batches.on_broken == "skip" else None
        start_head(embedder, train, config.model.head_start, cache=kept, workers=recipe.batches.workers, broken=left_out)
    objective = build_objective(
        config.objective, n_classes=train.n_classes, dim=embedder.dim, seed=config.seed, train=train, epochs=config.train.epochs
    )
    return fit(
        table,
        embedder,
        objective,
        run=config.run,
        recipe=recipe,
        watch=watch,
        config=config.model_dump(mode="json"),
        cache=feature_cache(embedder, recipe, progress=_telling(tell)),
    )


def _telling(tell: Tell) -> Callable[[int, int], None]:
    """Return what tells, now and then, how many images a cache has taken in."""
    last = time.monotonic()

    def progress(n_done: int, n_todo: int) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES or n_done == n_todo:
            last = time.monotonic()
            tell(f"computing features once: {n_done:,} of {n_todo:,} images")

    return progress


def measure_run(
    run: Run,
    embedder: Embedder,
    table: Table,
    settings: EvaluationSettings,
    *,
    how: Measuring = Measuring(),
    tell: Tell = lambda _: None,
) -> Measured:
    """Measure a run's model on a split of the table it was trained on.

    Unless `how.keeps` is false the run folder gets the scores (under the split's name in metrics.json), `per_query_<split>.npz`, and
    `embeddings_<split>.npz` where `settings.keep_embeddings` says so.

    Raises:
        DataError: the split has no row, or an image cannot be read.
        ConfigError: an unknown metric, similarity or level.
    """
    rows = table.of_split(settings.split)
    levels = _levels(rows, how.levels)
    tell(f"measuring on {len(rows):,} images of {rows.n_classes:,} classes ({settings.split})")
    embeddings = with_columns(rows, embed_table(embedder, rows, workers=how.workers, cache=how.cache))
    scoring = settings.model_dump(include={"ks", "similarity", "metrics", "coarse_metrics", "memory"})
    scores = score_table(replace(embeddings, levels={name: embeddings.levels[name] for name in levels}), **scoring)
    if how.levels is not None:
        scores = {level: scores[level] for level in how.levels}
    n_evaluations = sum(any(key.startswith("val/") for key in row) for row in run.rows())
    protocol = protocol_of(table, settings, levels=scores, n_evaluations=n_evaluations)
    if how.keeps:
        if settings.keep_embeddings:
            embeddings.save(run.folder / f"embeddings_{settings.split}.npz")
        write_per_query(per_query_file(run.folder, settings.split), per_query_of(scores, rows, protocol))
        run.write_metrics(settings.split, summary(scores, fingerprint=embedder.fingerprint()))
    return Measured(scores, protocol)


def check_evaluation(settings: EvaluationSettings) -> None:
    """Find a misspelt metric or similarity before training, not after."""
    for names in (settings.metrics, settings.coarse_metrics):
        metrics_of(names, settings.ks)
    function_of(settings.similarity)
    bytes_of(settings.memory)


def _levels(rows: Table, names: Sequence[str] | None) -> list[str]:
    """Return the coarser levels to measure (`label` is always there); `None`: all of the table's."""
    return (
        list(rows.levels) if names is None else [name for name in names if name != "label" and chosen(name, rows.levels, "level")]
    )


def _with_first_time(record: Record, run: Run) -> Record:
    """Keep the time of an experiment that was finished before: this time it was only read again."""
    before = read_record(run.folder)
    if before is None or before.identity != record.identity or before.n_steps != record.n_steps:
        return record
    return replace(record, seconds=before.seconds, resumed=before.resumed)
