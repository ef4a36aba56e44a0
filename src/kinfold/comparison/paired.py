"""Paired bootstrap of a difference between two models that were trained with several seeds and measured on the same queries."""

from typing import NamedTuple

import numpy as np

from kinfold.errors import ConfigError, DataError, ShapeError, did_you_mean

RESAMPLES = 2000
_COUNTS_AT_ONCE = 4_000_000


class Ends(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def paired_intervals(
    difference: np.ndarray, group: np.ndarray, *, over: str = "query", resamples: int = RESAMPLES, seed: int = 0
) -> list[Ends]:
    """Return the 95 % percentile bootstrap interval of the mean difference of each metric.

    d* = sum over s, q of n_s m_q d_sq / (S sum over q of m_q), where n_s says how often seed s is drawn among S draws with
    replacement, and m_q the same for queries (`over = "query"`), or for the class of q (`over = "class"`). Seeds and queries are
    drawn independently, and the same draws serve all metrics. With one seed only the queries vary.

    Args:
        difference: (metrics, seeds, queries); variant minus base, seed s against seed s.
        group: (queries,) class of each query.
        over: what is drawn besides the seeds: single queries, or whole classes with all of their queries.
        resamples: how often is drawn.
        seed: of the draws.

    Raises:
        ShapeError: the sizes do not fit each other.
        ConfigError: `over` is neither of the two.
        DataError: fewer than two queries, or classes, to draw from.

    Example:
        >>> d = np.array([[[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]]])
        >>> (ends,) = paired_intervals(d, np.array([0, 0, 1, 1]))
        >>> 0 <= ends.low < d.mean() < ends.high <= 1
        True

    Reference:
        Owen, The pigeonhole bootstrap, Annals of Applied Statistics 1(2), 2007.
    """
    mean = bootstrap_means(difference, group, over=over, resamples=resamples, seed=seed)
    return [Ends(float(low), float(high)) for low, high in np.quantile(mean, [0.025, 0.975], axis=1).T]


def bootstrap_means(difference: np.ndarray, group: np.ndarray, *, over: str, resamples: int, seed: int) -> np.ndarray:
    """Return the mean difference of each resample, (metrics, resamples); see `paired_intervals`."""
    if difference.ndim != 3 or group.shape != difference.shape[2:]:
        raise ShapeError(
            f"differences are {difference.shape}, classes {group.shape}: give (metrics, seeds, queries) and (queries,)."
        )
    total, size = _units(difference, group, over)
    n_metrics, n_seeds, n_units = total.shape
    if n_units < 2:
        raise DataError(f"an interval over {over} needs at least two of them, but there is {n_units}.")
    generator = np.random.default_rng(seed)
    seeds = _counts(n_seeds, resamples, generator)
    found = np.empty((n_metrics, resamples))
    step = max(1, _COUNTS_AT_ONCE // n_units)
    for first in range(0, resamples, step):
        done = slice(first, min(first + step, resamples))
        units = _counts(n_units, done.stop - first, generator)
        sums = (units @ total.reshape(-1, n_units).T).reshape(-1, n_metrics, n_seeds)
        found[:, done] = np.einsum("bms,bs,b->mb", sums, seeds[done], 1 / (n_seeds * (units @ size)))
    return found


def _units(difference: np.ndarray, group: np.ndarray, over: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the units that are drawn, (metrics, seeds, units), and their sizes."""
    total = difference.astype(np.float64)
    if over == "query":
        return total, np.ones(len(group))
    if over != "class":
        raise ConfigError(f"over {over!r} is not known: {did_you_mean(over, ['query', 'class'])}")
    place, size = np.unique(group, return_inverse=True, return_counts=True)[1:]
    order = np.argsort(place, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)[:-1]])
    return np.add.reduceat(total[..., order], starts, axis=-1), size.astype(np.float64)


def _counts(n: int, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return how often each of n things is drawn in n draws with replacement, (resamples, n)."""
    drawn = generator.integers(0, n, size=(resamples, n)) + n * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * resamples).reshape(resamples, n).astype(np.float64)
