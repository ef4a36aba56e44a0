"""Names of metrics → what to compute and how deep to rank for it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from jaxtyping import Float
from torch import Tensor

from kinfold.errors import ConfigError, did_you_mean
from kinfold.evaluation.cutoffs import cutoff, cutoffs
from kinfold.evaluation.metrics import AT_K, METRICS, OVERALL
from kinfold.evaluation.rank_record import Ranks
from kinfold.evaluation.search import Depth

NEEDS_BEST = ("recall_at_k", "mrr")
NEEDS_TOP = ("precision_at_k",)
NEEDS_FIRST = (*NEEDS_TOP, "r_precision", "map_at_r")


@dataclass(frozen=True)
class Metric:
    """One metric under its public name.

    Attributes:
        name: `recall_at_1`, `map_at_r`, `nmi`, …
        family: `recall_at_k`, or the name itself.
        k: for the families that have one.
    """

    name: str
    family: str
    k: int | None = None

    def of(self, ranks: Ranks) -> Float[Tensor, " n"]:
        """Return one value for each query."""
        return OVERALL[self.family](ranks) if self.k is None else AT_K[self.family](ranks, self.k)


def metrics_of(names: object, ks: object) -> list[Metric]:
    """Return the metrics that were asked for.

    Args:
        names: `None` for all ranking metrics, one name, or several. `recall_at_k` and `precision_at_k` stand for one metric for each
            k of `ks`; `recall_at_5` needs no 5 in `ks`.
        ks: the k of `recall_at_k` and `precision_at_k`.

    Raises:
        ConfigError: an unknown name, no name, or a k that is no integer of at least 1.
    """
    chosen = cutoffs(ks)
    if names is None:
        wanted = [*AT_K, *OVERALL]
    elif isinstance(names, str) or not isinstance(names, Iterable):
        wanted = [str(names)]
    else:
        wanted = [str(name) for name in cast("Iterable[object]", names)]
    metrics = [metric for name in wanted for metric in _named(name, chosen)]
    if not metrics:
        raise ConfigError("no metric is left to compute: name one in `metrics`, or one k in `ks`.")
    return list({metric.name: metric for metric in metrics}.values())


def depth_of(metrics: list[Metric]) -> Depth:
    """Return how deep the relevant items must be ranked for these metrics."""
    families = {metric.family for metric in metrics}
    if families <= {*NEEDS_BEST}:
        return Depth("best")
    k = max((metric.k or 0 for metric in metrics if metric.family in NEEDS_FIRST), default=0)
    if families <= {*NEEDS_BEST, *NEEDS_TOP}:
        return Depth("top", k)
    if families <= {*NEEDS_BEST, *NEEDS_FIRST}:
        return Depth("first", k)
    return Depth("all")


def _named(name: str, ks: tuple[int, ...]) -> list[Metric]:
    if name in AT_K:
        return [Metric(f"{name[:-1]}{k}", name, k) for k in ks]
    if name in METRICS:
        return [Metric(name, name)]
    match = re.fullmatch(r"(recall_at_|precision_at_)(-?\d+)", name)
    if match:
        k = cutoff(int(match[2]), name=f"metric `{name}`")
        return [Metric(f"{match[1]}{k}", f"{match[1]}k", k)]
    raise ConfigError(f"metric `{name}` is not known; {did_you_mean(name, METRICS)}")
