"""Bootstrap intervals of a mean over queries, or over whole classes."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.evaluation.typed import array_of

RESAMPLES = 2000
DRAWS_AT_ONCE = 4_000_000


class Interval(NamedTuple):
    """A bootstrap interval."""

    low: float
    high: float


def bootstrap_interval(
    value: Float[Tensor, " n"],
    group: Int[Tensor, " n"],
    *,
    over: str = "query",
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Return the percentile bootstrap interval (2000 resamples) of the mean of `value`.

    Args:
        value: one value for each query.
        group: the class of each query.
        over: what is drawn again with replacement: single queries, or whole classes with all of their queries. Queries of one class
            succeed and fail together, so `class` is the honest choice when the question is how the model does on *other* classes.
        level: probability that the interval should cover, in (0, 1).
        seed: of the draws.

    Raises:
        ConfigError: `over` or `level` is not one of the possible values.
        DataError: fewer than two things to draw from.

    Example:
        >>> low, high = bootstrap_interval(torch.tensor([1.0, 0.0, 1.0, 1.0]), torch.tensor([0, 0, 1, 1]))
        >>> 0 <= low < 0.75 < high <= 1
        True
    """
    if over not in ("query", "class"):
        raise ConfigError(f"over `{over}` is not known; {did_you_mean(over, ['query', 'class'])}")
    if isinstance(level, bool) or not 0 < level < 1:
        raise ConfigError(f"level is {level}, but must lie between 0 and 1, such as 0.95.")
    if over == "query":
        total, size = array_of(value.double()), np.ones(len(value))
    else:
        _, unit, count = distinct(group)
        total, size = array_of(torch.bincount(unit, value.double())), array_of(count.double())
    if len(total) < 2:
        raise DataError(f"an interval over {over} needs at least two of them, but there is {len(total)}.")
    mean = np.sort(_resampled_means(total, size, np.random.default_rng(seed)))
    low, high = np.quantile(mean, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _resampled_means(
    total: npt.NDArray[np.float64], size: npt.NDArray[np.float64], generator: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return the means of resamples of units that have the given sums and sizes."""
    means, step = list[npt.NDArray[np.float64]](), max(1, DRAWS_AT_ONCE // len(total))
    for first in range(0, RESAMPLES, step):
        drawn = generator.integers(0, len(total), size=(min(step, RESAMPLES - first), len(total)))
        means.append(total[drawn].sum(axis=1) / size[drawn].sum(axis=1))
    return np.concatenate(means)
