"""What becomes of the proxies: whose class no batch has had yet, and how far they turn in an epoch."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from kinfold.objectives.base import Objective
from kinfold.records import ParamGroup, TrainSet

DRIFT_ROWS = 4096
"""Proxies whose way is followed, evenly spaced over the classes: the mean of more says no more, and a copy of them is kept."""


def mean_angle(x: Tensor, y: Tensor) -> float:
    """Return the mean angle between row i of `x` and row i of `y`, in radians, in [0, π].

    angle = 2 atan2(‖u − v‖, ‖u + v‖) of the unit rows, which is exact for small angles, where the arc cosine is not.

    Example:
        >>> round(mean_angle(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 3.0]])), 4)
        1.5708
    """
    u, v = normalize(x.float(), dim=1), normalize(y.float(), dim=1)
    return float(2.0 * torch.atan2((u - v).norm(dim=1), (u + v).norm(dim=1)).mean())


class ProxyHealth:
    """Follows the parameter group `proxies` of any objective: a matrix of one row per class.

    Args:
        objective: whose proxies.
        train_set: knows the number of classes where the objective does not say it. Where that is not the number of rows, hits
            are not counted.
    """

    def __init__(self, objective: Objective, train_set: TrainSet):
        self._objective, self._train_set = objective, train_set
        self._start: Tensor | None = None
        self._hit: Tensor | None = None
        self.n_epochs = 0

    @property
    def never_hit(self) -> list[int]:
        """Numbers of the classes without an image in any batch so far."""
        return [] if self._hit is None else (~self._hit).nonzero().flatten().tolist()

    @property
    def n_proxies(self) -> int:
        """Number of proxies whose hits are counted."""
        return 0 if self._hit is None else len(self._hit)

    def begin_epoch(self) -> None:
        """Remember where the proxies stand."""
        proxies = self._proxies()
        if proxies is None:
            return
        self._start = _followed(proxies).clone()
        if self._hit is None and len(proxies) == (self._objective.n_classes or self._train_set.n_classes):
            self._hit = torch.zeros(len(proxies), dtype=torch.bool)

    def see(self, label: Tensor) -> None:
        """Take note of a batch's classes."""
        if self._hit is not None:
            label = label.to(self._hit.device)
            self._hit[label[(label >= 0) & (label < len(self._hit))]] = True

    def end_epoch(self) -> dict[str, float]:
        """Return `proxies_never_hit` and `proxy_drift`, as far as they are known; nothing where there are no proxies."""
        found: dict[str, float] = {}
        proxies = self._proxies()
        if self._hit is not None:
            self.n_epochs += 1
            found["proxies_never_hit"] = len(self.never_hit)
        if proxies is not None and self._start is not None and self._start.shape == _followed(proxies).shape:
            found["proxy_drift"] = mean_angle(_followed(proxies), self._start.to(proxies.device))
        self._start = None
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def is_resting(self, groups: Iterable[ParamGroup]) -> bool:
        """Return whether one of the trained groups holds the proxies, but the settings keep it frozen in this epoch."""
        proxies = self._proxies()
        held = proxies is not None and any(p is proxies for group in groups for p in group.params)
        return held and proxies is not None and not proxies.requires_grad

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and numbers."""
        return {"start": self._start, "hit": self._hit, "n_epochs": self.n_epochs}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self._start, self._hit, self.n_epochs = state["start"], state["hit"], state["n_epochs"]

    def _proxies(self) -> Tensor | None:
        """Return the objective's proxies as they are now: it may replace them at the start of an epoch."""
        found = [p for group in self._objective.parameter_groups() if group.name == "proxies" for p in group.params]
        return found[0] if len(found) == 1 and found[0].ndim == 2 and found[0].numel() else None


def _followed(proxies: Tensor) -> Tensor:
    return proxies.detach()[:: math.ceil(len(proxies) / DRIFT_ROWS)]
