"""How fast images are loaded, and how fast the model trains on them, measured on a few batches."""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from statistics import median

import torch

from kinfold.checks.finding import Finding
from kinfold.checks.rehearsal import Rehearsal
from kinfold.checks.settings import n_views
from kinfold.checks.units import as_time
from kinfold.evaluation.embed import embed_batches
from kinfold.recipe import Recipe
from kinfold.records import Batch

N_BATCHES = 4
LOADING_SECONDS = 4.0
STEPPING_SECONDS = 4.0
SLOW_STEP = 30.0
"""Seconds of a first step after which there is no second one; else there is, since a first one may take five times as long."""
WORTH_TELLING = 60.0
"""Seconds of waiting in a whole run below which slow data does not matter."""


@dataclass(frozen=True)
class Loaded:
    """A few batches, and how long they took.

    Attributes:
        batches: at most four, not empty.
        seconds: per batch, once the loading has started.
    """

    batches: list[Batch]
    seconds: float


@dataclass(frozen=True)
class Speed:
    """Seconds per batch.

    Attributes:
        load: reading and augmenting the images, with the recipe's workers.
        front: the frozen part, where its outputs are kept; else 0.
        step: forward, backward and update; over several stages the mean of a run.
        embed: forward alone, in evaluation mode; without the frozen part, where its outputs are kept.
        n_images: of a batch.
        of_stages: `step` of each stage and the epochs that it lasts, where there are several.
    """

    load: float
    front: float
    step: float
    embed: float
    n_images: int
    of_stages: Mapping[str, tuple[float, int]] = field(default_factory=dict)


def load_some(batches: Iterator[Batch], *, workers: int) -> Loaded:
    """Take a few batches, for four seconds at most (one batch in any case).

    Workers deliver in bursts, one batch each. So the first batch, which includes their start, is left out of the time, and the rest
    are a multiple of the workers; the time per batch is then theirs together. Without workers, every batch counts.

    Args:
        batches: an epoch of the training batches.
        workers: processes that load them.
    """
    n_timed = N_BATCHES if not workers else workers * -(-(N_BATCHES - 1) // workers)
    begin = time.perf_counter()
    kept, times = [], [begin]
    for batch in islice(batches, n_timed + bool(workers)):
        times.append(time.perf_counter())
        if len(kept) < N_BATCHES:
            kept.append(batch)
        if times[-1] - begin > LOADING_SECONDS:
            break
    first = 1 if workers and len(times) > 2 else 0
    return Loaded(kept, (times[-1] - times[first]) / max(1, len(times) - 1 - first))


def measure_speed(rehearsal: Rehearsal, loaded: Loaded, *, precision: str, first_step: float) -> Speed:
    """Train on the batches that were loaded, one at least and for four seconds at most, and embed one of them.

    Args:
        rehearsal: has made one update already, which took `first_step` seconds.
        loaded: from `load_some`.
        precision: of the embedding.
        first_step: counts only where it took so long that there is no other one.
    """
    begin = time.perf_counter()
    fed = rehearsal.fed(loaded.batches[0])
    front = _now(rehearsal) - begin if rehearsal.front is not None else 0.0
    times = [] if first_step < SLOW_STEP else [first_step]
    for batch in loaded.batches:
        if sum(times) >= STEPPING_SECONDS:
            break
        ready = fed if rehearsal.front is not None else rehearsal.fed(batch)
        begin = _now(rehearsal)
        rehearsal.step(ready)
        times.append(_now(rehearsal) - begin)
    begin = time.perf_counter()
    embed_batches(rehearsal.model, [fed], precision=precision)
    return Speed(loaded.seconds, front, median(times), time.perf_counter() - begin, len(fed.label))


def over_stages(speeds: Mapping[str, Speed], epochs: Mapping[str, int]) -> Speed:
    """Return the speed of a run that goes through stages: the first one's, with the mean step.

    Args:
        speeds: of each stage.
        epochs: how long each lasts.

    Example:
        >>> slow, fast = Speed(0.1, 0.0, 3.0, 0.1, 8), Speed(0.1, 0.0, 1.0, 0.1, 8)
        >>> over_stages({"pretraining": fast, "joint": slow}, {"pretraining": 3, "joint": 1}).step
        1.5
    """
    first = next(iter(speeds.values()))
    if len(speeds) == 1:
        return first
    stages = {name: (speed.step, epochs[name]) for name, speed in speeds.items()}
    mean = sum(step * n for step, n in stages.values()) / sum(n for _, n in stages.values())
    return replace(first, step=mean, of_stages=stages)


def _now(rehearsal: Rehearsal) -> float:
    """Return the time, once the accelerator has done what it was asked for."""
    if rehearsal.device.type == "cuda":
        torch.cuda.synchronize(rehearsal.device)
    return time.perf_counter()


def speed_findings(speed: Speed, recipe: Recipe, *, n_batches: int) -> list[Finding]:
    """Compare loading and computing.

    Returns:
        `slow_data`: a warning where loading takes longer than computing and costs a minute or more in the whole run. Otherwise the
        note `speed`.
    """
    workers = recipe.batches.workers
    load, compute = speed.load, speed.front if speed.front else speed.step
    waiting = load if not workers else max(0.0, load - compute)
    share = waiting / max(1e-9, waiting + compute)
    what = "the frozen part" if speed.front else "training"
    message = (
        f"`batches.workers` = {workers} loads {speed.n_images / load:,.0f} images/s, {what} takes {speed.n_images / compute:,.0f} "
        f"images/s: {share:.0%} of the time is waiting for data"
    )
    n_loads = n_batches * (n_views(recipe) if speed.front else recipe.train.epochs)
    lost = waiting * n_loads
    if load <= compute or lost < WORTH_TELLING:
        return [Finding("speed", "note", message, f"nothing to do: waiting takes {as_time(lost)} of the whole run")]
    remedy = f"raise batches.workers (this machine has {os.cpu_count()} processors), or store the images smaller"
    return [Finding("slow_data", "warning", f"{message}, {as_time(lost)} in the whole run", remedy)]
