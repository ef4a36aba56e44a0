"""What is wrong with a recipe's settings by themselves: those that do nothing, and those that contradict each other."""

from kinfold.checks.finding import Finding
from kinfold.checks.idle import idle
from kinfold.checks.schedules import schedule_findings, schedules
from kinfold.checks.wording import counted
from kinfold.engine.settings import OptimizerSettings
from kinfold.errors import did_you_mean
from kinfold.recipe import Recipe
from kinfold.train import VALIDATION_METRICS

HOLD_OUT = "hold classes out of the training classes (data.hold_out_every = 5, or `hold_out_classes`)"


def setting_findings(recipe: Recipe, *, n_val: int, frozen: str | None) -> list[Finding]:
    """Look at the settings of a recipe.

    Args:
        recipe: the settings.
        n_val: images of split `val`.
        frozen: the part of the model that does not train (`Embedder.frozen`).

    Returns:
        `idle_setting` (warning), `limited_views` (warning): few random views of each image, though nothing is kept,
        `needs_validation` and `unknown_monitor` (error), `no_training` (note), `uncached` (note): a frozen part that is computed anew
        for every view, and what `schedule_findings` returns.
    """
    return [
        *_batches(recipe),
        *_cache(recipe, frozen),
        *_epochs(recipe),
        *(_validation(recipe, n_val) if n_val else _no_validation(recipe)),
        *_optimizer(recipe.optimizer),
        *schedule_findings(recipe),
    ]


def _batches(recipe: Recipe) -> list[Finding]:
    found = []
    if recipe.batches.sampler == "random":
        reason = "`batches.sampler` = 'random' draws images whatever their class"
        found += idle(recipe.batches, "batches", {"images_per_class": reason})
    if recipe.batches.sampler != "hierarchical":
        reason = f"`batches.sampler` = {recipe.batches.sampler!r} knows no groups"
        found += idle(recipe.batches, "batches", {"classes_per_group": reason})
    if not recipe.batches.augment:
        reason = "`batches.augment` = false trains on the evaluation view"
        found += idle(recipe.batches, "batches", dict.fromkeys(("crop_scale", "flip", "color_jitter"), reason))
    return found


def _cache(recipe: Recipe, frozen: str | None) -> list[Finding]:
    cache = recipe.cache
    if frozen is None:
        reason = "no part of the model is frozen"
        return [*idle(cache, "cache", dict.fromkeys(("use", "half", "folder"), reason)), *_views_of_nothing(recipe)]
    found = [] if cache.use else idle(cache, "cache", dict.fromkeys(("half", "folder"), "`cache.use` = false keeps nothing"))
    if not recipe.batches.augment:
        return [*found, *idle(cache, "cache", {"views": "`batches.augment` = false: there is one view of each image"})]
    if cache.views is not None and cache.views > recipe.train.epochs > 0:
        found.append(
            Finding(
                "idle_setting",
                "warning",
                f"`cache.views` = {cache.views} is more than `train.epochs` = {recipe.train.epochs}: an epoch shows one view, so the "
                "others are never seen",
                "lower cache.views, or train for more epochs",
            )
        )
    if cache.use and cache.views is None:
        found.append(
            Finding(
                "uncached",
                "note",
                f"`model.frozen` = {frozen!r}, but each epoch has fresh random views, so that the frozen part is computed anew",
                "set cache.views to a few views of each image, or batches.augment = false, to compute it once",
            )
        )
    return found


def _views_of_nothing(recipe: Recipe) -> list[Finding]:
    """Find that random views are limited in number although nothing is kept of them."""
    views = recipe.cache.views
    if views is None:
        return []
    if not recipe.batches.augment:
        return idle(recipe.cache, "cache", {"views": "no part of the model is frozen, and `batches.augment` = false"})
    message = (
        f"`cache.views` = {views} trains on no more than {counted(views, 'random view')} of each image, and nothing is gained: no part "
        "of the model is frozen, so nothing can be kept"
    )
    remedy = "remove cache.views, so that each epoch has fresh views, or freeze a part (model.frozen)"
    return [Finding("limited_views", "warning", message, remedy)]


def _epochs(recipe: Recipe) -> list[Finding]:
    if recipe.train.epochs:
        return []
    message = "`train.epochs` = 0: nothing trains, the model is measured as it starts"
    return [Finding("no_training", "note", message, "nothing to do if that is meant; else set train.epochs")]


def _validation(recipe: Recipe, n_val: int) -> list[Finding]:
    train, found = recipe.train, []
    if train.monitor not in VALIDATION_METRICS:
        message = f"`train.monitor` = {train.monitor!r} is not measured on the {n_val:,} images of val"
        found.append(Finding("unknown_monitor", "error", message, did_you_mean(train.monitor, VALIDATION_METRICS)))
    n = n_evaluations(recipe)
    patience = train.early_stopping_patience
    if patience is not None and 0 < n <= patience + 1:
        reason = f"there are {n} evaluations (train.epochs, train.evaluate_every), and the first never counts as waiting"
        found += idle(train, "train", {"early_stopping_patience": reason})
    for key, schedule, _ in schedules(recipe):
        if schedule.kind == "plateau" and 0 < n <= schedule.patience + 2:
            reason = f"with `patience` = {schedule.patience} the first drop would come after the last of {n} evaluations"
            found += idle(schedule, key, {"kind": reason})
    return found


def _no_validation(recipe: Recipe) -> list[Finding]:
    train, reason = recipe.train, "there are no images of split val, so nothing is evaluated during training"
    found = idle(train, "train", {"monitor": reason, "evaluate_every": reason})
    needing = {f"{key}.kind": "'plateau'" for key, schedule, _ in schedules(recipe) if schedule.kind == "plateau"}
    if train.early_stopping_patience is not None:
        needing["train.early_stopping_patience"] = str(train.early_stopping_patience)
    return found + [
        Finding("needs_validation", "error", f"`{key}` = {value}, but {reason}", HOLD_OUT) for key, value in needing.items()
    ]


def n_evaluations(recipe: Recipe) -> int:
    """Return how often a run is evaluated: every `evaluate_every` epochs, and after the last one.

    Example:
        >>> n_evaluations(Recipe(train={"epochs": 10, "evaluate_every": 4}))
        3
    """
    return -(-recipe.train.epochs // recipe.train.evaluate_every)


def n_views(recipe: Recipe) -> int:
    """Return how many views of each training image are kept, where a frozen part's outputs are."""
    return min(recipe.cache.views or 1, recipe.train.epochs) if recipe.batches.augment else 1


def _optimizer(optimizer: OptimizerSettings) -> list[Finding]:
    kinds = {optimizer.kind, *(group.kind for group in optimizer.groups.values() if group.kind is not None)}
    reads = {"momentum": {"sgd", "rmsprop"}, "betas": {"adamw", "adam"}, "eps": {"adamw", "adam", "rmsprop"}}
    reason = f"no optimiser here ({', '.join(sorted(kinds))}) reads it"
    return idle(optimizer, "optimizer", {name: reason for name, readers in reads.items() if not kinds & readers})
