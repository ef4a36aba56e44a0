"""What a run tells about itself while it trains, and the warnings that follow."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from kinfold.engine.alarms import RULES, Vitals
from kinfold.engine.progress import Progress
from kinfold.engine.proxy_health import ProxyHealth
from kinfold.engine.seeding import random_state, restore_random_state
from kinfold.objectives.base import Objective, embedding_health
from kinfold.records import Embedded, ParamGroup, TrainSet

PREFIX = "health/"
_JUDGED = (
    *("effective_rank", "positive_similarity", "negative_similarity", "similarity_gap"),
    *("active_positive", "active_negative", "generated_variance"),
)


class HealthMonitor:
    """Measures a run's health for its log, and warns once of each thing that goes wrong.

    All that it remembers is in `state_dict`, so that a resumed run logs the same numbers and repeats no warning.

    Args:
        objective: asked for its own numbers (`Objective.health`); its group `proxies` is followed.
        train_set: knows the number of classes where the objective does not say it.

    Attributes:
        warnings: those given so far: `epoch`, `step`, `warning` (its name in `RULES`), `message`.
        is_open: an epoch was begun whose numbers have not been taken yet.
    """

    def __init__(self, objective: Objective, train_set: TrainSet):
        self._objective = objective
        self._proxies = ProxyHealth(objective, train_set)
        self._vitals = Vitals()
        self.is_open = False
        self.warnings: list[dict[str, Any]] = []

    def begin_epoch(self) -> None:
        """Take note that an epoch begins."""
        self._proxies.begin_epoch()
        self.is_open = True

    def see(self, labels: Iterable[Tensor]) -> None:
        """Take note of the classes of an update's batches."""
        for label in labels:
            self._proxies.see(label)

    def measure(self, batch: Embedded, progress: Progress) -> dict[str, float]:
        """Return the numbers of this batch for the log; the generators stay as they are, whatever the objective draws."""
        before = random_state()
        with torch.no_grad():
            found = {**embedding_health(batch), **self._objective.health(batch)}
        restore_random_state(before)
        found = {name: float(value) for name, value in found.items() if math.isfinite(value)}
        where = {"step": progress.step, "epoch": progress.epoch, "room": _room(batch)}
        self._vitals.see_row({**where, **{name: found[name] for name in _JUDGED if name in found}})
        return {f"{PREFIX}{name}": value for name, value in found.items()}

    def end_epoch(self, groups: Iterable[ParamGroup]) -> dict[str, float]:
        """Return the numbers of the epoch for the log; `groups` are those that the optimisers hold."""
        found = self._proxies.end_epoch()
        if "proxy_drift" in found and not self._proxies.is_resting(groups):
            self._vitals.drifts.append(found["proxy_drift"])
        self.is_open = False
        return {f"{PREFIX}{name}": value for name, value in found.items()}

    def new_warnings(self, progress: Progress) -> list[dict[str, Any]]:
        """Return the warnings that are due and were not given before."""
        vitals, proxies = self._vitals, self._proxies
        vitals.step, vitals.n_batches, vitals.n_inactive = progress.step, progress.n_batches, progress.n_inactive
        vitals.n_proxies, vitals.never_hit, vitals.n_epochs = proxies.n_proxies, proxies.never_hit, proxies.n_epochs
        told = {warning["warning"] for warning in self.warnings}
        found = {code: rule(vitals) for code, rule in RULES.items() if code not in told}
        where = {"epoch": progress.epoch, "step": progress.step}
        new = [{**where, "warning": code, "message": message} for code, message in found.items() if message is not None]
        self.warnings += new
        return new

    def state_dict(self) -> dict[str, Any]:
        """Return tensors, plain numbers, lists and dictionaries."""
        own = {"rows": list(self._vitals.rows), "drifts": list(self._vitals.drifts)}
        return {**own, "proxies": self._proxies.state_dict(), "warnings": list(self.warnings), "is_open": self.is_open}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._vitals.rows, self._vitals.drifts = list(state["rows"]), list(state["drifts"])
        self._proxies.load_state_dict(state["proxies"])
        self.warnings, self.is_open = list(state["warnings"]), state["is_open"]


def _room(batch: Embedded) -> int:
    """Return how many directions the centres of the batch's classes can span."""
    return min(batch.embedding.shape[1], len(batch.label.unique()) - 1)
