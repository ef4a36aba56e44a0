"""One update of the weights: forward, phases, checks, clipping, step."""

import math
from dataclasses import replace
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.nn.utils import clip_grad_value_, clip_grads_with_norm_, get_total_norm

from kinfold.engine.groups import build_groups
from kinfold.engine.optimizers import Optimizers, Span
from kinfold.engine.progress import Progress
from kinfold.engine.settings import FitSettings, StageSettings
from kinfold.errors import ConfigError, TrainingError, did_you_mean
from kinfold.objectives.base import Objective
from kinfold.records import Batch, Embedded, Losses

KEPT = "the last good checkpoint is kept."
CALMER = "lower the learning rate, clip gradients (train.clip_norm), or train in 32-true."


class Session:
    """Model, objective and optimisers on their device, with the precision asked for.

    Args:
        model: images → (feature, embedding).
        objective: what is minimised.
        settings: of optimisation and loop.
        n_batches: batches of an epoch.
        progress: where the run stands; a stage change writes its beginning there.

    Attributes:
        embedded: the newest batch, without a graph; `None` before the first update.
    """

    def __init__(self, model: nn.Module, objective: Objective, settings: FitSettings, n_batches: int, progress: Progress):
        loop = settings.loop
        accelerator: Any = loop.accelerator
        precision: Any = loop.precision
        _check_place(loop.precision, loop.accelerator)
        self.fabric = Fabric(accelerator=accelerator, devices=1, precision=precision)
        self.settings, self.objective, self.progress = settings, objective, progress
        self.groups = build_groups(model, objective)
        self.model = self.fabric.setup_module(model)
        self.fabric.to_device(objective)
        self.steps_per_epoch = math.ceil(n_batches / loop.gradient_accumulation_steps)
        self.last_norm = math.nan
        self.embedded: Embedded | None = None
        self.build_optimizers()

    def build_optimizers(self) -> None:
        """Make the optimisers of the objective's present stage."""
        self.stage = self.objective.stage
        unknown = [name for name in self.settings.stages if name not in self.objective.stages]
        if unknown:
            raise ConfigError(
                f"`stage.{unknown[0]}` is no stage of this objective: {did_you_mean(unknown[0], self.objective.stages)}"
            )
        stage = self.settings.stages.get(self.stage, StageSettings())
        optimizer, schedule = self.settings.of_stage(self.stage)
        epochs = stage.epochs or self.settings.loop.epochs - self.progress.stage_epoch
        span = Span(max(1, epochs * self.steps_per_epoch), self.steps_per_epoch, self.progress.stage_start)
        self.optimizers = Optimizers(self.groups, optimizer, schedule, span)

    def follow_stage(self) -> None:
        """Build the optimisers anew if the objective has entered another stage."""
        if self.objective.stage != self.stage:
            self.progress.stage_start, self.progress.stage_epoch = self.progress.step, self.progress.epoch
            self.build_optimizers()

    def update(self, window: list[Batch]) -> dict[str, float]:
        """Make one update from a window of batches (several under accumulation) and return the numbers to log."""
        rates = self.optimizers.set_rates(self.progress.step)
        phases = self.objective.phases
        steps_by_phase = len(window) == 1
        values: dict[str, float] = {}
        self.optimizers.zero_grad()
        for batch in window:
            embedded = self._embed(batch)
            for phase in phases:
                losses: Losses = self.objective(embedded, phase)
                self._check_trains(losses, phase)
                self._note(losses, values, 1 / len(window))
                self.fabric.backward(losses.total / len(window), retain_graph=phase != phases[-1])
                if steps_by_phase:
                    self._step()
            self._count_inactive(embedded.embedding)
            self.embedded = replace(embedded, embedding=embedded.embedding.detach(), feature=embedded.feature.detach())
        if not steps_by_phase:
            self._step()
        self.progress.step += 1
        return {**values, "grad_norm": self.last_norm, **{f"lr/{name}": rate for name, rate in rates.items()}}

    def _embed(self, batch: Batch) -> Embedded:
        image, label, item, view = self.fabric.to_device((batch.image, batch.label, batch.item, batch.view))
        feature, embedding = self.model(image)
        if embedding.requires_grad:
            embedding.retain_grad()
        return Embedded(embedding, feature, label, item, view)

    def _note(self, losses: Losses, values: dict[str, float], share: float) -> None:
        """Add the terms to the row; stop before a term that is not finite reaches the weights."""
        numbers = torch.stack([term.detach() for term in losses.terms.values()]).tolist()
        for name, number in zip(losses.terms, numbers, strict=True):
            if not math.isfinite(number):
                raise TrainingError(
                    f"the loss term `{name}` is {number} at step {self.progress.step + 1} (last gradient norm "
                    f"{self.last_norm:.4g}): {KEPT} In a new run folder, {CALMER}"
                )
            values[name] = values.get(name, 0.0) + number * share
        values["loss"] = values.get("loss", 0.0) + math.fsum(numbers) * share

    def _step(self) -> None:
        """Check, clip and apply the gradients, then forget them."""
        optimizers = self.optimizers
        scaler = getattr(self.fabric.strategy.precision, "scaler", None)
        if scaler is not None:
            for optimizer in optimizers.with_work():
                scaler.unscale_(optimizer)
        params = optimizers.with_gradients()
        if params:
            self._check_and_clip(params, is_scaled=scaler is not None)
        if scaler is None:
            optimizers.step()
        else:  # one update of the scale for all optimisers: it forgets who was unscaled
            for optimizer in optimizers.with_work():
                scaler.step(optimizer)
            scaler.update()
        optimizers.zero_grad()

    def _check_and_clip(self, params: list[nn.Parameter], *, is_scaled: bool) -> None:
        loop = self.settings.loop
        total = get_total_norm([p.grad for p in params if p.grad is not None])
        self.last_norm = float(total)
        # Under float16 the scaler skips an update whose gradients overflow: that is its ordinary working.
        if not math.isfinite(self.last_norm) and not is_scaled:
            raise TrainingError(
                f"the gradient norm is {self.last_norm} at step {self.progress.step + 1} although the loss is finite: {KEPT} Look for a "
                f"square root or a division at zero in the loss, or {CALMER}"
            )
        if loop.clip_value is not None:
            clip_grad_value_(params, loop.clip_value)
        if loop.clip_norm is not None:
            clip_grads_with_norm_(params, loop.clip_norm, total)

    def check_weights(self) -> None:
        """Refuse to save weights that are not finite over a checkpoint that is good."""
        for owner, module in (("model", self.model), ("objective", self.objective)):
            for name, tensor in module.state_dict().items():
                if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                    raise TrainingError(
                        f"the {owner}'s `{name}` is not finite after step {self.progress.step} (last gradient norm "
                        f"{self.last_norm:.4g}): {KEPT} In a new run folder, {CALMER}"
                    )

    def _check_trains(self, losses: Losses, phase: str) -> None:
        if not any(term.requires_grad for term in losses.terms.values()):
            raise ConfigError(
                f"nothing trains in epoch {self.progress.epoch + 1}, phase `{phase}`: every parameter that the loss depends on is frozen. "
                "Lower `frozen_epochs`, or give the model a head."
            )

    def _count_inactive(self, embedding: Tensor) -> None:
        """Count a batch whose gradient at the embeddings is exactly zero: none of its pairs was active."""
        self.progress.n_batches += 1
        if embedding.requires_grad and (embedding.grad is None or not bool(embedding.grad.any())):
            self.progress.n_inactive += 1


def _check_place(precision: str, accelerator: str) -> None:
    has = {"cuda": torch.cuda.is_available(), "gpu": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if accelerator in has and not has[accelerator]:
        raise ConfigError(f"`train.accelerator` = '{accelerator}' is not there: use 'auto' or 'cpu'.")
    if precision == "16-mixed" and (accelerator == "cpu" or (accelerator == "auto" and not any(has.values()))):
        raise ConfigError(
            "`train.precision` = '16-mixed' needs an accelerator: train in 'bf16-mixed' or '32-true' on this processor."
        )
