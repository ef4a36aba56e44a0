"""Where a run stands: the numbers that a checkpoint keeps beside the tensors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Progress:
    """Where a run stands.

    Attributes:
        epoch: the current epoch, from 0.
        batch: batches of it that are done; 0 means `on_epoch_start` is still to come.
        step: updates done.
        n_inactive: batches whose gradient at the embeddings was exactly zero: no pair was active.
        n_batches: batches seen.
        best: best value of the monitored metric.
        best_epoch: its epoch; −1 before the first evaluation.
        n_waited: evaluations since then.
        stage_start: update at which the current stage began.
        stage_epoch: epoch at which the current stage began.
        is_done: training has ended.
        pending: the log row being averaged.
        evaluations: metric values of each evaluation, with its epoch.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    n_inactive: int = 0
    n_batches: int = 0
    best: float = -math.inf
    best_epoch: int = -1
    n_waited: int = 0
    stage_start: int = 0
    stage_epoch: int = 0
    is_done: bool = False
    pending: dict[str, list[float]] = field(default_factory=dict)
    evaluations: list[dict[str, float]] = field(default_factory=list)

    @property
    def best_evaluation(self) -> dict[str, float]:
        """The values of the best epoch's evaluation; empty before the first one."""
        return next((row for row in self.evaluations if row["epoch"] == self.best_epoch), {})

    def state_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and dictionaries."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for name in self.__dataclass_fields__:
            setattr(self, name, state[name])

    def see_step(self, values: Mapping[str, float]) -> None:
        """Add one update's numbers to the log row being averaged."""
        for name, value in values.items():
            self.pending.setdefault(name, []).append(value)

    def take_row(self) -> dict[str, float]:
        """Return the means of the row being averaged and begin a new one."""
        row = {name: math.fsum(values) / len(values) for name, values in self.pending.items()}
        self.pending = {}
        return row

    def see_evaluation(self, value: float) -> bool:
        """Take the monitored value of this epoch; return whether it is the best so far (the earlier wins a tie)."""
        is_best = value > self.best
        if is_best:
            self.best, self.best_epoch, self.n_waited = value, self.epoch, 0
        else:
            self.n_waited += 1
        return is_best
