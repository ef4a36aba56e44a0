"""Training from a table of images to a finished model in a run folder."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from kinfold.data.hierarchies import hierarchy_of
from kinfold.data.table import Table
from kinfold.engine.checkpoint import load_checkpoint
from kinfold.engine.fit import Task
from kinfold.engine.fit import fit as run_loop
from kinfold.engine.progress import Progress
from kinfold.engine.run import Run
from kinfold.engine.seeding import seeded_everything
from kinfold.engine.watch import Watch
from kinfold.errors import ConfigError, DataError, ShapeError, did_you_mean
from kinfold.measure import embed_table, score_table, with_columns
from kinfold.models.embedder import Embedder
from kinfold.models.feature_cache import FeatureCache, cache_folder
from kinfold.models.frozen import Front, Rest
from kinfold.objectives.base import Objective
from kinfold.recipe import Recipe
from kinfold.records import Embedded
from kinfold.training_batches import training_batches, trains_on_values

VALIDATION_METRICS = ("recall_at_1", "r_precision", "map_at_r")


@dataclass(frozen=True)
class Trained:
    """What `fit` returns.

    Attributes:
        embedder: the trained model: of the best epoch where classes were held out for validation, of the last one otherwise.
        run: the run folder; `run.model` holds the model.
        progress: where the run ended, with every evaluation.
    """

    embedder: Embedder
    run: Run
    progress: Progress


def fit(  # noqa: PLR0913 (the public entry: each argument is a choice of its own)
    table: Table,
    embedder: Embedder,
    objective: Objective,
    *,
    run: str | Path,
    recipe: Recipe | None = None,
    watch: Watch | None = None,
    config: Mapping[str, Any] | None = None,
    cache: FeatureCache | None = None,
) -> Trained:
    """Train an embedder on the table's training images; go on where `run` stands if it was interrupted.

    Rows of split `train` are trained on, classes of split `val` choose the best epoch, rows of split `test` are not touched.

    Args:
        table: images, classes and splits (`read_table`).
        embedder: the model; trained in place.
        objective: what is minimised, made for `table.of_split("train").n_classes` classes.
        run: the run folder.
        recipe: batches, learning rates, epochs; see `Recipe`.
        watch: is told of every update; `kinfold.ConsoleWatch(epochs)` shows a progress line.
        config: what to write down as the run's configuration beside the recipe (the command line gives the whole file).
        cache: where outputs of a frozen part are kept; `None`: where `recipe.cache` says.

    Returns:
        The trained embedder, the run folder and its progress.

    Raises:
        ConfigError: settings that contradict each other or another run in the folder.
        DataError: too few classes, or classes that are both trained on and evaluated on.
        ShapeError: an objective made for another number of classes.

    Example:
        See the first lines of the README.
    """
    recipe = recipe or Recipe()
    train, val = table.of_split("train"), table.of_split("val")
    _check_fits(train, embedder, objective)
    _check_splits(table, val, recipe)
    embedder.classes = cast(Any, list(train.classes))
    # Where nothing is frozen, features change with every step: nothing is worth keeping.
    cache = None if embedder.frozen is None else cache or feature_cache(embedder, recipe)
    batches = training_batches(train, embedder, recipe, cache=cache)
    folder = Run(run)
    described: dict[str, Any] = {"embedder": _described(embedder), "objective_object": objective.describe()}
    described |= _data_described(train, val, recipe)
    folder.open({**(config or {"recipe": recipe.model_dump(mode="json")}), **described})
    evaluate = partial(_validate, val, embedder, recipe, batches.broken, cache)
    task = Task(batches, _TrainSet(train, embedder, recipe, batches.broken, cache), evaluate)
    model = Rest(embedder, from_values=trains_on_values(embedder, recipe)) if embedder.frozen else embedder
    try:
        progress = Progress(is_done=True)  # without an epoch, the model is measured as it starts
        if recipe.train.epochs:
            with seeded_everything(recipe.seed):
                progress = run_loop(model, objective, task, settings=recipe.fit_settings, run=folder, watch=watch)
    finally:
        batches.close()
        if batches.broken:
            folder.add_to_metrics("left_out", batches.broken)
    if len(val) and folder.best.exists():
        model.load_state_dict(load_checkpoint(folder.best)["model"])
    embedder.save_pretrained(folder.model, card=_card(train, progress))
    return Trained(embedder, folder, progress)


def feature_cache(
    embedder: Embedder, recipe: Recipe, *, progress: Callable[[int, int], object] | None = None
) -> FeatureCache | None:
    """Return where a recipe keeps outputs of the frozen part; `None` where nothing is frozen, or nothing is to be kept."""
    return None if embedder.frozen is None else any_feature_cache(recipe, progress=progress)


def any_feature_cache(recipe: Recipe, *, progress: Callable[[int, int], object] | None = None) -> FeatureCache | None:
    """Return where a recipe keeps features, whether anything is frozen or not; `None` where nothing is to be kept."""
    if not recipe.cache.use:
        return None
    return FeatureCache(cache_folder(recipe.cache.folder), half=recipe.cache.half, progress=progress)


def table_fingerprint(*tables: Table) -> str:
    """Return a hash of paths and labels: a run is resumed on the same images only."""
    digest = hashlib.sha256()
    for table in tables:
        for path, label in zip(table.path, table.label, strict=True):
            digest.update(f"{path}\0{type(label).__name__}\0{label}\n".encode())
        digest.update(b"\1")
    return digest.hexdigest()


def _data_described(train: Table, val: Table, recipe: Recipe) -> dict[str, str]:
    """Return hashes of the images and, where batches are made of groups of classes, of these: a run goes on with the same ones only."""
    found, level = {"data_fingerprint": table_fingerprint(train, val)}, recipe.batches.level
    if level is not None:
        groups = dict(zip(train.classes, hierarchy_of(train, level).groups_of(level), strict=True))
        found["batch_groups"] = hashlib.sha256(repr(groups).encode()).hexdigest()
    return found


def _described(embedder: Embedder) -> dict[str, Any]:
    """Return what the run's configuration says of the model; checkpoints leave a frozen part out, so its weights are named here."""
    if embedder.frozen is None:
        return embedder.describe()
    return {**embedder.describe(), "frozen": {"part": embedder.frozen, "weights": Front(embedder, embedder.frozen).fingerprint()}}


def _check_fits(train: Table, embedder: Embedder, objective: Objective) -> None:
    if train.n_classes < 2:
        raise DataError(f"the training split has {train.n_classes} class(es): at least 2 are needed to tell classes apart.")
    if objective.n_classes not in (None, train.n_classes):
        raise ShapeError(
            f"the objective was made for {objective.n_classes} classes but the training split has {train.n_classes}: "
            'pass n_classes=table.of_split("train").n_classes.'
        )
    if objective.dim not in (None, embedder.dim):
        raise ShapeError(
            f"the objective was made for embeddings of {objective.dim} numbers but the embedder gives {embedder.dim}."
        )


def _check_splits(table: Table, val: Table, recipe: Recipe) -> None:
    if not recipe.allow_shared_classes:
        table.check_disjoint()
    monitor = recipe.train.monitor
    if len(val):
        if monitor not in VALIDATION_METRICS:
            raise ConfigError(f"`train.monitor` = {monitor!r}: {did_you_mean(monitor, VALIDATION_METRICS)}")
    elif recipe.train.early_stopping_patience is not None or recipe.schedule.kind == "plateau":
        raise ConfigError(
            "early stopping and the schedule `plateau` need classes to validate on: hold some out of the training classes "
            "(hold_out_classes, or data.hold_out_every = 5), or bring rows of split val."
        )


def _validate(
    val: Table, embedder: Embedder, recipe: Recipe, broken: dict[str, str], cache: FeatureCache | None
) -> dict[str, float] | None:
    if not len(val):
        return None
    embedded = _embedded(val, embedder, recipe, broken, cache)
    scores = score_table(with_columns(val, embedded), ks=(1,), metrics=VALIDATION_METRICS)
    return {name: float(value) for name, value in scores["label"].metrics.items()}


def _embedded(table: Table, embedder: Embedder, recipe: Recipe, broken: dict[str, str], cache: FeatureCache | None) -> Embedded:
    left_out = broken if recipe.batches.on_broken == "skip" else None
    how = {"workers": recipe.batches.workers, "precision": recipe.train.precision}
    return embed_table(embedder, table, broken=left_out, cache=cache, **how)


@dataclass
class _TrainSet:
    """The training set for objectives: embedded when asked for, with the model as it then is."""

    table: Table
    embedder: Embedder
    recipe: Recipe
    broken: dict[str, str]
    cache: FeatureCache | None

    @property
    def n_classes(self) -> int:
        return self.table.n_classes

    def embed(self, view: int = 0) -> Embedded:
        if view:
            raise ConfigError(f"view {view} of the training set: this recipe makes one view of each image.")
        return _embedded(self.table, self.embedder, self.recipe, self.broken, self.cache)


def _card(train: Table, progress: Progress) -> dict[str, Any]:
    epochs = progress.best_epoch + 1 if progress.evaluations else progress.epoch
    data = f"{len(train):,} images of {train.n_classes:,} classes, {epochs} epochs"
    scores = {name: f"{value:.4f}" for name, value in progress.best_evaluation.items() if name.startswith("val/")}
    return {"data": data, "scores": scores} if scores else {"data": data}
