"""Learning-rate factors as functions of the step, and the plateau rule."""

import math

from kinfold.engine.settings import ScheduleSettings

_ONE_CYCLE_START = 1 / 25


def factor(settings: ScheduleSettings, step: int, *, n_steps: int, steps_per_epoch: int) -> float:
    """Return what multiplies a group's peak learning rate at an update.

    Args:
        settings: the schedule.
        step: number of the update, counted from 0.
        n_steps: updates of the whole schedule; later ones keep its last factor.
        steps_per_epoch: updates an epoch.

    Returns:
        A factor in [0, 1]. `plateau` is constant here: `Plateau` holds its drops.

    Example:
        >>> cosine = ScheduleSettings(kind="cosine")
        >>> [round(factor(cosine, step, n_steps=5, steps_per_epoch=5), 2) for step in range(5)]
        [1.0, 0.85, 0.5, 0.15, 0.0]
    """
    step = min(step, n_steps - 1)
    if settings.kind == "one_cycle":
        return _one_cycle(settings, step, n_steps)
    warmup = round(settings.warmup_epochs * steps_per_epoch)
    if step < warmup:
        return (step + 1) / (warmup + 1)
    if settings.kind == "cosine":
        begin, end = _cycle(settings, step, warmup, n_steps, steps_per_epoch)
        return _cosine(1.0, settings.final_factor, (step - begin) / max(1, end - 1 - begin))
    if settings.kind == "step":
        return settings.gamma ** _n_drops(settings, step / steps_per_epoch)
    return 1.0


def _one_cycle(settings: ScheduleSettings, step: int, n_steps: int) -> float:
    top = settings.rise * n_steps - 1  # as torch places it
    if step < top:
        return _cosine(_ONE_CYCLE_START, 1.0, step / top)
    return _cosine(1.0, settings.final_factor, (step - max(top, 0.0)) / max(1e-9, n_steps - 1 - max(top, 0.0)))


def _cycle(settings: ScheduleSettings, step: int, warmup: int, n_steps: int, steps_per_epoch: int) -> tuple[int, int]:
    """Return the first step of the cosine that a step belongs to, and of the one after it."""
    begins = [round(epoch * steps_per_epoch) for epoch in sorted(settings.restarts)]
    borders = [warmup, *(begin for begin in begins if warmup < begin < n_steps), n_steps]
    return max(each for each in borders if each <= step), min(each for each in borders if each > step)


def _cosine(start: float, end: float, progress: float) -> float:
    return end + (start - end) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2


def _n_drops(settings: ScheduleSettings, epoch: float) -> int:
    passed = sum(epoch >= milestone for milestone in settings.milestones)
    return passed + (math.floor(epoch / settings.every_epochs + 1e-9) if settings.every_epochs else 0)


class Plateau:
    """Drops the learning rate after some evaluations without progress; its state goes into the checkpoint.

    Args:
        settings: a schedule of kind `plateau`; any other kind never drops.
    """

    def __init__(self, settings: ScheduleSettings):
        self.settings = settings
        self.best, self.n_waited, self.scale = -math.inf, 0, 1.0

    def see(self, value: float) -> None:
        """Take one evaluation's value; larger is better."""
        if self.settings.kind != "plateau":
            return
        if value > self.best:
            self.best, self.n_waited = value, 0
            return
        self.n_waited += 1
        if self.n_waited > self.settings.patience:
            self.scale, self.n_waited = self.scale * self.settings.gamma, 0

    def state_dict(self) -> dict[str, float]:
        """Return what resuming needs."""
        return {"best": self.best, "n_waited": self.n_waited, "scale": self.scale}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restore what `state_dict` returned."""
        self.best, self.n_waited, self.scale = state["best"], int(state["n_waited"]), state["scale"]
