"""What is wrong with the schedules of a recipe: settings that their kind does not read, times after the end."""

from collections.abc import Iterator

from kinfold.checks.finding import Finding
from kinfold.checks.idle import idle
from kinfold.engine.settings import OptimizerSettings, ScheduleSettings
from kinfold.recipe import Recipe

READS = {
    "constant": {"warmup_epochs"},
    "cosine": {"warmup_epochs", "final_factor", "restarts"},
    "step": {"warmup_epochs", "milestones", "every_epochs", "gamma"},
    "plateau": {"warmup_epochs", "gamma", "patience"},
    "one_cycle": {"rise", "final_factor"},
}
"""The settings that each kind of schedule reads."""


def schedule_findings(recipe: Recipe) -> list[Finding]:
    """Look at the run's schedule, those of parameter groups, and those of stages.

    Returns:
        `idle_setting` (warning): not read by this kind, or it would happen after the last epoch. `warmup_too_long` (warning): the
        peak learning rate is never reached.
    """
    return [
        finding for key, schedule, n_epochs in schedules(recipe) for finding in _findings(key, schedule, n_epochs) if n_epochs
    ]


def schedules(recipe: Recipe) -> Iterator[tuple[str, ScheduleSettings, int]]:
    """Yield every schedule of a recipe with its key, and the epochs that it runs over."""
    epochs = recipe.train.epochs
    yield "schedule", recipe.schedule, epochs
    yield from _of_groups("optimizer", recipe.optimizer, epochs)
    for name, stage in recipe.stage.items():
        n_epochs = stage.epochs or epochs
        if stage.schedule is not None:
            yield f"stage.{name}.schedule", stage.schedule, n_epochs
        if stage.optimizer is not None:
            yield from _of_groups(f"stage.{name}.optimizer", stage.optimizer, n_epochs)


def _of_groups(key: str, optimizer: OptimizerSettings, n_epochs: int) -> Iterator[tuple[str, ScheduleSettings, int]]:
    for name, group in optimizer.groups.items():
        if group.schedule is not None:
            yield f"{key}.{name}.schedule", group.schedule, n_epochs


def _findings(key: str, schedule: ScheduleSettings, n_epochs: int) -> list[Finding]:
    unread = ScheduleSettings.model_fields.keys() - READS[schedule.kind] - {"kind"}
    found = idle(schedule, key, {name: f"`{key}.kind` = {schedule.kind!r} does not read it" for name in sorted(unread)})
    if schedule.warmup_epochs >= n_epochs:
        found.append(
            Finding(
                "warmup_too_long",
                "warning",
                f"`{key}.warmup_epochs` = {schedule.warmup_epochs:g} of `train.epochs` = {n_epochs}: the learning rate never reaches "
                "its peak",
                f"lower {key}.warmup_epochs, or train for more epochs",
            )
        )
    end = f"training ends after `train.epochs` = {n_epochs}"
    for name in {"step": ("milestones",), "cosine": ("restarts",)}.get(schedule.kind, ()):
        late = [epoch for epoch in getattr(schedule, name) if epoch >= n_epochs]
        if late:
            found += idle(schedule, key, {name: f"{end}, before {', '.join(f'{each:g}' for each in late)}"})
    if schedule.kind == "step" and schedule.every_epochs is not None and schedule.every_epochs >= n_epochs:
        found += idle(schedule, key, {"every_epochs": f"{end}, before the first drop"})
    return found
