"""One update on one real batch: which groups get a gradient, which move, and what the batch teaches."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from kinfold.checks.rehearsal import Rehearsal
from kinfold.records import Batch, Embedded

TRIES = 20
"""Under float16 the first updates may be skipped, until the scale of the loss fits."""


@dataclass(frozen=True)
class GroupStep:
    """What one update did to one parameter group.

    Attributes:
        name: of the group.
        n_tensors: its parameters that train in the last epoch.
        learning_rate: the peak.
        grad_norm: of the group's gradients, after clipping; nan where it got none.
        change: norm of the update divided by the norm of the weights before; 0 where nothing moved.
        without_gradient: numbers of its parameters whose gradient was missing or zero.
    """

    name: str
    n_tensors: int
    learning_rate: float
    grad_norm: float
    change: float
    without_gradient: int


@dataclass(frozen=True)
class DryStep:
    """What one update did.

    Attributes:
        groups: all trainable groups, in their order.
        values: the loss and its terms, before the update.
        is_inactive: the gradient at the embeddings was exactly zero.
        health: what the objective says of the batch, such as `active_positive` (`Objective.health`).
        embedded: the batch, without a graph.
    """

    groups: tuple[GroupStep, ...]
    values: dict[str, float]
    is_inactive: bool
    health: dict[str, float]
    embedded: Embedded


def dry_step(rehearsal: Rehearsal, batch: Batch) -> DryStep:
    """Make one update at the peak learning rates with a batch from `Rehearsal.fed`.

    Raises:
        TrainingError: a term of the loss, or the gradient, is not finite; nothing has moved then.
    """
    session = rehearsal.session
    before = [[p.detach().clone() for p in group.params] for group in session.groups]
    n_active = session.progress.n_batches - session.progress.n_inactive
    with _gradients_seen(session.optimizers.torch_optimizers) as seen:
        values = rehearsal.step(batch)
        tries = 1
        while session.settings.loop.precision == "16-mixed" and not seen.norm and tries < TRIES:
            values, tries = rehearsal.step(batch), tries + 1
    rates = session.optimizers.set_rates(session.progress.step)
    groups = tuple(
        _group_step(group.name, group.params, old, rates[group.name], seen)
        for group, old in zip(session.groups, before, strict=True)
    )
    assert session.embedded is not None  # an update has just been made
    embedded = session.embedded
    health = {name: value for name, value in rehearsal.objective.health(embedded).items() if math.isfinite(value)}
    is_inactive = session.progress.n_batches - session.progress.n_inactive == n_active
    return DryStep(groups, values, is_inactive, health, embedded)


def _group_step(name: str, params: list[nn.Parameter], old: list[Tensor], rate: float, seen: "_Seen") -> GroupStep:
    trained = [p for p in params if p.requires_grad]
    norms = [seen.norm[id(p)] for p in trained if id(p) in seen.norm]
    moved = math.sqrt(sum(float((p.detach() - each).float().square().sum()) for p, each in zip(params, old, strict=True)))
    size = math.sqrt(sum(float(each.float().square().sum()) for each in old))
    return GroupStep(
        name=name,
        n_tensors=len(trained),
        learning_rate=rate,
        grad_norm=math.sqrt(math.fsum(norm**2 for norm in norms)) if norms else math.nan,
        change=moved / size if size else (math.inf if moved else 0.0),
        without_gradient=sum(not seen.norm.get(id(p)) for p in trained),
    )


@dataclass
class _Seen:
    """Norms of the gradients that the optimisers applied, by the identity of the parameter."""

    norm: dict[int, float] = field(default_factory=dict)

    def note(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.norm[id(p)] = max(self.norm.get(id(p), 0.0), float(torch.linalg.vector_norm(p.grad.detach().float())))


@contextmanager
def _gradients_seen(optimizers: list[Optimizer]) -> Iterator[_Seen]:
    """Look at the gradients just before each optimiser applies them: unscaled and clipped."""
    seen = _Seen()
    hooks = [optimizer.register_step_pre_hook(seen.note) for optimizer in optimizers]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
