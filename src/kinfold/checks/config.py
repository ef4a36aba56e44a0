"""`check_config`: what is wrong with a whole configuration, before it is trained."""

from collections.abc import Callable
from typing import TypeVar

from kinfold.build import build_embedder
from kinfold.build_objective import build_objective
from kinfold.checks.cost import Afterwards
from kinfold.checks.finding import Finding, in_order
from kinfold.checks.idle import idle
from kinfold.checks.measuring import measuring_findings, n_measured
from kinfold.checks.suited import too_few_classes
from kinfold.checks.training import check_training, stopped
from kinfold.config import Config
from kinfold.data.table import Table
from kinfold.errors import KinfoldError
from kinfold.models.embedder import Embedder
from kinfold.recipe import CacheSettings, Recipe

Made = TypeVar("Made")


def check_config(config: Config, *, table: Table) -> list[Finding]:
    """Look at everything that `kinfold train` would do with a configuration; nothing is trained, nothing is written.

    Unknown keys are an error already when the file is read. Here the settings are looked at together with the data, the model and the
    objective are built, and a few steps are rehearsed (see `check_training`).

    Args:
        config: from `read_config`.
        table: what `build_table(config.data)` gives.

    Returns:
        What was found, errors first, then warnings, then notes; each names the setting to change.
    """
    found = [*_idle(config), *measuring_findings(config, table)]
    train = table.of_split("train")
    if train.n_classes < 2:
        return in_order([*found, too_few_classes(train)])
    embedder = _made(found, "model", lambda: build_embedder(config))
    dim = (config.model.dim or 1) if embedder is None else embedder.dim
    objective = _made(
        found,
        "objective",
        lambda: build_objective(
            config.objective, n_classes=train.n_classes, dim=dim, seed=config.seed, train=train, epochs=config.train.epochs
        ),
    )
    if embedder is None or objective is None:
        return in_order(found)
    found += _head_start(config, embedder, len(train))
    if any(finding.code == "bad_evaluation" for finding in found):
        afterwards = Afterwards()
    else:
        settings = config.evaluation
        afterwards = Afterwards(n_measured(config, table), settings.memory, settings.keep_embeddings)
    return in_order([*found, *check_training(table, embedder, objective, _recipe(config), afterwards=afterwards)])


def _recipe(config: Config) -> Recipe:
    """Return the recipe, without what a head start alone reads of `[cache]`: to training itself it would do nothing."""
    recipe, cache = config.recipe, config.cache
    if config.model.head_start == "random" or config.model.frozen is not None:
        return recipe
    return recipe.model_copy(update={"cache": CacheSettings(**cache.model_dump(include={"views"} & cache.model_fields_set))})


def _made(found: list[Finding], what: str, make: Callable[[], Made]) -> Made | None:
    try:
        return make()
    except KinfoldError as error:
        found.append(stopped(error, what))
        return None


def _idle(config: Config) -> list[Finding]:
    model, data, groups = config.model, config.data, config.optimizer.groups
    found = []
    if model.trunk == "convnet":
        found += idle(model, "model", {"pretrained": "`model.trunk` = 'convnet' has no published weights"})
    if data.resize == "squash":
        found += idle(data, "data", {"crop_ratio": "`data.resize` = 'squash' cuts nothing off"})
    if "proxies" in groups and groups["proxies"].learning_rate is not None:
        reason = f"`optimizer.proxies.learning_rate` = {groups['proxies'].learning_rate:g} is taken instead"
        found += idle(config.objective, "objective", {"lr_scale": reason})
    return found


def _head_start(config: Config, embedder: Embedder, n_train: int) -> list[Finding]:
    """Find a head that cannot start from the training images' features, or has more directions than they differ in."""
    start, dim, n_features = config.model.head_start, config.model.dim, embedder.trunk.n_features
    if start == "random":
        return []
    if dim is None:
        message = f"`model.head_start` = {start!r} needs a head, but `model.dim` is none"
        return [Finding("bad_head_start", "error", message, "set model.dim, or drop model.head_start")]
    if dim > n_features:
        message = f"`model.head_start` = {start!r} gives at most {n_features} dimensions, one a feature, but `model.dim` = {dim}"
        return [Finding("bad_head_start", "error", message, f"set model.dim = {n_features} or less, or drop model.head_start")]
    if dim >= n_train:
        message = f"`model.dim` = {dim}, but {n_train} images differ in at most {n_train - 1} directions (`model.head_start` = {start!r})"
        return [Finding("bad_head_start", "warning", message, f"set model.dim below {n_train}, or drop model.head_start")]
    return []
