"""Named parameter groups → torch optimisers that step together, with schedules and freezing."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from kinfold.engine.groups import check_names
from kinfold.engine.schedules import Plateau, factor
from kinfold.engine.settings import GroupSettings, OptimizerSettings, ScheduleSettings
from kinfold.records import ParamGroup


@dataclass(frozen=True)
class Span:
    """How many updates a schedule runs over.

    Attributes:
        n_steps: of the whole schedule.
        steps_per_epoch: of an epoch.
        start: number of the update at which the schedule began.
    """

    n_steps: int
    steps_per_epoch: int
    start: int = 0


class Optimizers:
    """One torch optimiser per kind over all parameter groups; all of them step, parameters without a gradient stay.

    Args:
        groups: named groups, apart from each other (`build_groups`).
        settings: the run's optimiser and its groups by name.
        schedule: the run's schedule; a group's own comes first.
        span: what the schedules run over.
    """

    def __init__(self, groups: list[ParamGroup], settings: OptimizerSettings, schedule: ScheduleSettings, span: Span):
        check_names(settings, groups)
        self.groups, self.span = groups, span
        self._own = {group.name: settings.groups.get(group.name, GroupSettings()) for group in groups}
        self._schedule = {name: own.schedule or schedule for name, own in self._own.items()}
        self._plateau = {name: Plateau(each) for name, each in self._schedule.items()}
        self._peak = {group.name: _peak(group, self._own[group.name], settings) for group in groups}
        self.torch_optimizers = _build(groups, self._own, self._peak, settings)

    @property
    def parameters(self) -> list[nn.Parameter]:
        """All parameters of all groups."""
        return [p for group in self.groups for p in group.params]

    def freeze(self, epoch: int | None) -> None:
        """Switch gradients off for groups still frozen in this epoch of the stage, and on for the others; `None`: on for all."""
        for group in self.groups:
            for p in group.params:
                p.requires_grad_(epoch is None or epoch >= self._own[group.name].frozen_epochs)

    def set_rates(self, step: int) -> dict[str, float]:
        """Set every group's learning rate for update number `step` (from 0) and return them by name."""
        rates = {}
        span = self.span
        for optimizer in self.torch_optimizers:
            for torch_group in optimizer.param_groups:
                name = torch_group["name"]
                scale = factor(
                    self._schedule[name], step - span.start, n_steps=span.n_steps, steps_per_epoch=span.steps_per_epoch
                )
                torch_group["lr"] = rates[name] = self._peak[name] * scale * self._plateau[name].scale
        return rates

    def see(self, value: float) -> None:
        """Tell the plateau rules one evaluation's value."""
        for plateau in self._plateau.values():
            plateau.see(value)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for optimizer in self.torch_optimizers:
            optimizer.zero_grad(set_to_none=True)

    def with_work(self) -> list[torch.optim.Optimizer]:
        """Return the torch optimisers that have a gradient to apply."""
        return [each for each in self.torch_optimizers if any(p.grad is not None for g in each.param_groups for p in g["params"])]

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for optimizer in self.with_work():
            optimizer.step()

    def with_gradients(self) -> list[nn.Parameter]:
        """Return the parameters that have a gradient now."""
        return [p for p in self.parameters if p.grad is not None]

    def state_dict(self) -> dict[str, Any]:
        """Return what resuming needs."""
        return {
            "optimizers": [optimizer.state_dict() for optimizer in self.torch_optimizers],
            "plateau": {name: plateau.state_dict() for name, plateau in self._plateau.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for optimizer, saved in zip(self.torch_optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        for name, plateau in self._plateau.items():
            plateau.load_state_dict(state["plateau"][name])


def _peak(group: ParamGroup, own: GroupSettings, settings: OptimizerSettings) -> float:
    return _first(own.learning_rate, group.learning_rate, settings.learning_rate * group.lr_scale)


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)


def _build(
    groups: list[ParamGroup], own: dict[str, GroupSettings], peak: dict[str, float], settings: OptimizerSettings
) -> list[torch.optim.Optimizer]:
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for group in groups:
        entry = {
            "name": group.name,
            "params": group.params,
            "lr": peak[group.name],
            "weight_decay": _first(own[group.name].weight_decay, group.weight_decay, settings.weight_decay),
        }
        kind = own[group.name].kind or group.kind or settings.kind
        if kind != "sgd":  # it divides by nothing
            entry["eps"] = _first(own[group.name].eps, group.eps, settings.eps)
        by_kind.setdefault(kind, []).append(entry)
    return [_make(kind, entries, settings) for kind, entries in by_kind.items()]


def _make(kind: str, entries: list[dict[str, Any]], settings: OptimizerSettings) -> torch.optim.Optimizer:
    if kind == "rmsprop":
        return torch.optim.RMSprop(entries, momentum=settings.momentum, eps=settings.eps)
    # One kernel for all parameters where torch has it: a step of a small net is mostly overhead.
    fused = all(p.device.type in ("cpu", "cuda") and p.is_floating_point() for entry in entries for p in entry["params"])
    if kind == "sgd":
        return torch.optim.SGD(entries, momentum=settings.momentum, fused=fused)
    maker = torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
    return maker(entries, betas=settings.betas, eps=settings.eps, fused=fused)
