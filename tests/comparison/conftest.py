"""Measured runs that were never trained: values per query made up, everything else as a run folder has it."""

from collections.abc import Callable

import numpy as np
import pytest

from kinfold.comparison.per_query import LevelValues, PerQuery
from kinfold.comparison.runs import Group, MeasuredRun

PROTOCOL = {"images": "6 images aa", "levels": ["label"], "split": "test", "selection": "last epoch"}
GROUP = np.array([0, 0, 1, 1, 2, 2], dtype=np.int32)


def made_run(values, *, seed=0, name=None, protocol=PROTOCOL, seconds: float | None = 60.0, **settings) -> MeasuredRun:
    """Return a run with these values of `recall_at_1` per query."""
    column = np.asarray(values, dtype=np.float32)
    group = GROUP[: len(column)]
    level = LevelValues(np.arange(len(column)), group, np.array(["a", "b", "c"]), {"recall_at_1": column})
    flat = {"model.dim": 64, "train.epochs": 4, **{key.replace("__", "."): value for key, value in settings.items()}}
    return MeasuredRun(name or f"run-{seed}", seed, flat, PerQuery(protocol, {"label": level}), seconds)


@pytest.fixture
def make_group() -> Callable[..., Group]:
    """Return a maker of groups: name, then seed → values of its queries."""

    def make(name, values, **more):
        own = {key: more.pop(key) for key in ("note", "factor", "failed") if key in more}
        runs = {seed: made_run(each, seed=seed, name=f"{name}-{seed}", **more) for seed, each in values.items()}
        return Group(name, runs, **own)

    return make
