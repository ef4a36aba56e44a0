"""What the loop tells whoever watches it, and how fast it is."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kinfold.engine.progress import Progress


@dataclass(frozen=True)
class Tick:
    """One update as a watcher sees it.

    Attributes:
        progress: where the run stands.
        values: this update's numbers: loss terms, gradient norm, learning rates.
        n_batches: batches of an epoch.
        images_per_second: since the last row of the log.
        wait_share: share of the time spent waiting for data, in [0, 1].
        seconds_left: to the end of the run, at the pace so far.
    """

    progress: Progress
    values: Mapping[str, float]
    n_batches: int
    images_per_second: float
    wait_share: float
    seconds_left: float


class Watch(Protocol):
    """Somebody who looks on."""

    def resumed(self, progress: Progress) -> None:
        """A checkpoint was found and loaded."""
        ...

    def tick(self, tick: Tick) -> None:
        """One update is done."""
        ...

    def evaluated(self, epoch: int, metrics: Mapping[str, float], *, is_best: bool) -> None:
        """An evaluation is done."""
        ...

    def warned(self, code: str, message: str) -> None:
        """Something goes wrong: which of `kinfold.engine.alarms.RULES`, and its cause with what to do. Each comes once a run."""
        ...


class NoWatch:
    """Looks away."""

    def resumed(self, progress: Progress) -> None:
        """Do nothing."""

    def tick(self, tick: Tick) -> None:
        """Do nothing."""

    def evaluated(self, epoch: int, metrics: Mapping[str, float], *, is_best: bool) -> None:
        """Do nothing."""

    def warned(self, code: str, message: str) -> None:
        """Do nothing."""


class Clock:
    """Measures images per second and the share of time spent waiting for data, from one row of the log to the next."""

    def __init__(self) -> None:
        self._begin = self._row = time.perf_counter()
        self._images, self._waited, self._updates = 0, 0.0, 0

    def waited(self, since: float) -> None:
        """Add the time since `since` (of `time.perf_counter`) as waiting for data."""
        self._waited += time.perf_counter() - since

    def updated(self, n_images: int) -> None:
        """Count one update."""
        self._images += n_images
        self._updates += 1

    def speed(self) -> tuple[float, float]:
        """Return images per second and the share of waiting since the last `new_row`."""
        seconds = max(time.perf_counter() - self._row, 1e-9)
        return self._images / seconds, min(1.0, self._waited / seconds)

    def seconds_left(self, n_updates: int) -> float:
        """Return how long so many more updates take at the pace so far."""
        return n_updates * (time.perf_counter() - self._begin) / max(1, self._updates)

    def new_row(self) -> None:
        """Begin to measure the next row."""
        self._row, self._images, self._waited = time.perf_counter(), 0, 0.0
