"""The one training loop."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from torch import nn

from kinfold.engine.checkpoint import load_checkpoint, save_checkpoint
from kinfold.engine.health import HealthMonitor
from kinfold.engine.interrupt import StopRequest
from kinfold.engine.modes import set_training_mode
from kinfold.engine.progress import Progress
from kinfold.engine.run import Run
from kinfold.engine.seeding import random_state, restore_random_state
from kinfold.engine.session import Session
from kinfold.engine.settings import FitSettings
from kinfold.engine.train_set import EpochTrainSet
from kinfold.engine.watch import Clock, NoWatch, Tick, Watch
from kinfold.errors import ConfigError, Interrupted, TrainingError, did_you_mean
from kinfold.objectives.base import Objective
from kinfold.records import Batch, Batches, TrainSet


@dataclass(frozen=True)
class Task:
    """What a model is trained on and measured with.

    Attributes:
        batches: the training batches, by epoch.
        train_set: the training set as an objective may ask for it.
        evaluate: returns the validation metrics, or `None` where nothing is held out.
    """

    batches: Batches
    train_set: TrainSet
    evaluate: Callable[[], Mapping[str, float] | None] = lambda: None


def fit(
    model: nn.Module, objective: Objective, task: Task, *, settings: FitSettings, run: Run, watch: Watch | None = None
) -> Progress:
    """Train `model` to minimise `objective`, or go on where the run's last checkpoint stands.

    The run folder's configuration is the caller's (`Run.open`). Killed at any moment and called again with the same arguments,
    the run ends with the same weights and numbers as one that was not, on the same machine's CPU.

    Args:
        model: images → (feature, embedding); may have `parameter_groups`.
        objective: what is minimised.
        task: batches, training set and evaluation.
        settings: optimisation and loop.
        run: the folder for log and checkpoints.
        watch: is told of every update.

    Returns:
        Where the run stands at its end.

    Raises:
        ConfigError: a parameter is in no group, a group or metric of that name does not exist.
        TrainingError: a loss or gradient is not finite, or the checkpoint does not fit.
        Interrupted: Ctrl-C or SIGTERM; everything is saved.
    """
    loop = _Loop(model, objective, task, settings, run, watch or NoWatch())
    loop.restore()
    progress = loop.progress
    try:
        with loop.stop.listening():
            while not progress.is_done:
                loop.begin_epoch()
                for window in loop.windows():
                    values = loop.session.update(window)
                    progress.batch = task.batches.position
                    objective.on_step_end(progress.step)
                    loop.note(values, window)
                    loop.save_if_due()
                loop.end_epoch()
    except KeyboardInterrupt:
        raise Interrupted(loop.farewell()) from None
    finally:
        loop.session.optimizers.freeze(None)
    return progress


class _Loop:
    """The parts of the loop that are about order, saving and logging."""

    def __init__(self, model: nn.Module, objective: Objective, task: Task, settings: FitSettings, run: Run, watch: Watch):
        self.model, self.objective, self.task, self.run, self.watch = model, objective, task, run, watch
        self.settings, self.progress, self.stop, self.clock = settings.loop, Progress(), StopRequest(), Clock()
        self.n_batches = len(task.batches)
        if self.n_batches == 0:
            raise ConfigError("the training set gives no batch: lower the batch size, or bring more images.")
        self.session = Session(model, objective, settings, self.n_batches, self.progress)
        self.monitor = HealthMonitor(objective, task.train_set)
        self._saved_at, self._saved_step = time.monotonic(), 0

    def restore(self) -> None:
        if not self.run.last.exists():
            self.run.cut_log(0)
            self.run.best.unlink(missing_ok=True)
            self.save()
            return
        state = load_checkpoint(self.run.last)
        try:
            self.model.load_state_dict(state["model"])
            self.objective.load_state_dict(state["objective"])
            self.progress.load_state_dict(state["progress"])
            self.session.build_optimizers()
            self.session.optimizers.load_state_dict(state["optimizers"])
            self.session.fabric.strategy.precision.load_state_dict(state["precision"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise TrainingError(f"{self.run.last} is of another model, objective or optimiser: {error}") from error
        restore_random_state(state["random"])
        self.session.last_norm = state["last_norm"]
        if "health" in state:  # older checkpoints have none: its numbers begin with the next epoch
            self.monitor.load_state_dict(state["health"])
        self.run.cut_log(state["log_size"])
        self._saved_step = self.progress.step
        self.watch.resumed(self.progress)

    def save(self, *, is_best: bool = False) -> None:
        state = self.state()
        if is_best:  # first: a kill in between is resumed from before the evaluation, which writes the same again
            save_checkpoint(self.run.best, state)
        save_checkpoint(self.run.last, state)
        self._saved_at, self._saved_step = time.monotonic(), self.progress.step

    def state(self) -> dict[str, Any]:
        session = self.session
        session.check_weights()
        return {
            "model": self.model.state_dict(),
            "objective": self.objective.state_dict(),
            "progress": self.progress.state_dict(),
            "optimizers": session.optimizers.state_dict(),
            "precision": session.fabric.strategy.precision.state_dict(),
            "random": random_state(),
            "last_norm": session.last_norm,
            "health": self.monitor.state_dict(),
            "log_size": self.run.log_size(),
        }

    def farewell(self) -> str:
        progress = self.progress
        saved = "is saved" if progress.step == self._saved_step else f"holds the checkpoint of step {self._saved_step}"
        place = f"stopped at step {progress.step} (epoch {progress.epoch + 1})"
        return f"{place}: {self.run.folder} {saved}; the same command goes on from there."

    def begin_epoch(self) -> None:
        if self.progress.batch == 0:
            with self.stop.at_once():
                self.objective.on_epoch_start(self.progress.epoch, EpochTrainSet(self.task.train_set))
            self.session.follow_stage()
            self.monitor.begin_epoch()
        with self.stop.at_once():
            self.task.batches.prepare(self.progress.epoch)
        self.session.optimizers.freeze(self.progress.epoch - self.progress.stage_epoch)
        set_training_mode(self.session.model, frozen_batch_norm=self.settings.frozen_batch_norm)
        self.objective.train()
        self.clock.new_row()

    def windows(self) -> Iterator[list[Batch]]:
        """Yield the rest of the epoch in windows of batches; the last one of an epoch may be shorter."""
        batches = self.task.batches.epoch(self.progress.epoch, start=self.progress.batch)
        while True:
            since = time.perf_counter()
            window = list(islice(batches, self.settings.gradient_accumulation_steps))
            self.clock.waited(since)
            if not window:
                return
            yield window

    def note(self, values: Mapping[str, float], window: list[Batch]) -> None:
        progress = self.progress
        progress.see_step(values)
        self.monitor.see(batch.label for batch in window)
        self.clock.updated(sum(len(batch.item) for batch in window))
        images_per_second, wait_share = self.clock.speed()
        epochs_left = self.settings.epochs - progress.epoch - progress.batch / self.n_batches
        left = self.clock.seconds_left(math.ceil(epochs_left * self.session.steps_per_epoch))
        self.watch.tick(Tick(progress, values, self.n_batches, images_per_second, wait_share, left))
        is_end = progress.batch >= self.n_batches
        if (is_end or progress.step % self.settings.log_every == 0) and self.session.embedded is not None:
            health = self.monitor.measure(self.session.embedded, progress)
            self._log_row({**health, **self._end_health()} if is_end else health)

    def _end_health(self) -> dict[str, float]:
        return self.monitor.end_epoch(self.session.groups)

    def _log_row(self, health: Mapping[str, float]) -> None:
        progress = self.progress
        images_per_second, wait_share = self.clock.speed()
        speed = {"images_per_second": images_per_second, "wait_share": wait_share, "time": time.time()}
        where = {"epoch": progress.epoch, "step": progress.step, "n_inactive": progress.n_inactive}
        self.run.log({**where, **progress.take_row(), **health, **speed})
        for warning in self.monitor.new_warnings(progress):
            self.run.log(warning)
            self.watch.warned(warning["warning"], warning["message"])
        self.clock.new_row()

    def save_if_due(self) -> None:
        steps = self.progress.step - self._saved_step
        by_steps = self.settings.checkpoint_steps is not None and steps >= self.settings.checkpoint_steps
        by_time = time.monotonic() - self._saved_at >= 60 * self.settings.checkpoint_minutes
        if by_steps or by_time or self.stop.is_set:
            self.save()
        if self.stop.is_set:
            raise KeyboardInterrupt

    def end_epoch(self) -> None:
        progress = self.progress
        progress.batch = self.n_batches
        is_last = progress.epoch + 1 >= self.settings.epochs
        # Where the images of the last batches cannot be read, no update has ended the epoch.
        health = self._end_health() if self.monitor.is_open else {}
        if progress.pending or health:
            self._log_row(health)
        metrics = None
        if is_last or (progress.epoch + 1) % self.settings.evaluate_every == 0:
            self.save()
            with self.stop.at_once():
                metrics = self.task.evaluate()
        is_best = self._see(metrics) if metrics is not None else False
        snapshot = self.objective.snapshot()
        if snapshot:
            self.run.log({"epoch": progress.epoch, "step": progress.step, "snapshot": snapshot})
        patience = self.settings.early_stopping_patience
        progress.is_done = is_last or (patience is not None and progress.n_waited >= patience)
        progress.epoch, progress.batch = progress.epoch + 1, 0
        if progress.is_done and self.monitor.warnings:
            self.run.write_metrics("warnings", self.monitor.warnings)
        self.save(is_best=is_best)

    def _see(self, metrics: Mapping[str, float]) -> bool:
        progress, monitor = self.progress, self.settings.monitor
        if monitor not in metrics:
            raise ConfigError(
                f"the monitored metric `{monitor}` is not among the validation metrics: {did_you_mean(monitor, metrics)}"
            )
        is_best = progress.see_evaluation(metrics[monitor])
        self.session.optimizers.see(metrics[monitor])
        row = {"epoch": progress.epoch, "step": progress.step, **{f"val/{name}": value for name, value in metrics.items()}}
        progress.evaluations.append(row)
        self.run.log(row)
        self.watch.evaluated(progress.epoch, metrics, is_best=is_best)
        return is_best
