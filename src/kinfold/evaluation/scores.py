"""What an evaluation found: means, one value for each query, intervals, and a table by class."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.evaluation.intervals import Interval, bootstrap_interval
from kinfold.evaluation.labels import Label
from kinfold.evaluation.typed import integers


@dataclass(frozen=True, eq=False)
class Scores:
    """The result of `score`.

    Attributes:
        metrics: mean of each metric over the scored queries, and the cluster metrics.
        per_query: one value for each scored query, by metric (cluster metrics have none).
        query: row of each scored query, ascending.
        label: class of each scored query, as an index into `class_names`.
        class_names: labels as they were given.
        skipped: rows of the queries without a relevant item; whether they count is said by `settings["empty"]`.
        settings: similarity, empty, and the sizes of both sides.
    """

    metrics: Mapping[str, float]
    per_query: Mapping[str, Float[Tensor, " s"]]
    query: Int[Tensor, " s"]
    label: Int[Tensor, " s"]
    class_names: list[Label]
    skipped: Int[Tensor, " u"]
    settings: Mapping[str, str | int] = field(default_factory=dict[str, str | int])

    def interval(self, name: str, over: str = "query", level: float = 0.95, seed: int = 0) -> Interval:
        """Return the bootstrap interval of a metric, drawing queries or whole classes again (see `bootstrap_interval`)."""
        return bootstrap_interval(self.values_of(name), self.label, over=over, level=level, seed=seed)

    def per_class(self) -> list[dict[str, Label | float]]:
        """Return one row for each class: its label, its number of scored queries `n`, and the mean of each metric over them."""
        classes, row, n = distinct(self.label)
        means = {name: torch.bincount(row, value) / n for name, value in self.per_query.items()}
        return [
            {"label": self.class_names[c], "n": int(n[i]), **{name: float(mean[i]) for name, mean in means.items()}}
            for i, c in enumerate(integers(classes))
        ]

    def values_of(self, name: str) -> Float[Tensor, " s"]:
        """Return the per-query values of a metric.

        Raises:
            ConfigError: it was not computed, or has no value for a single query.
        """
        if name not in self.per_query:
            hint = "a cluster metric has one value for all queries;" if name in self.metrics else "it was not computed;"
            raise ConfigError(f"no per-query values of `{name}`: {hint} {did_you_mean(name, self.per_query)}")
        return self.per_query[name]

    def to_json(self) -> str:
        """Return metrics, counts and settings as one JSON object."""
        counts = {"n_scored": len(self.query), "n_skipped": len(self.skipped)}
        return json.dumps({"metrics": dict(self.metrics), **counts, "settings": dict(self.settings)}, indent=2)

    def __str__(self) -> str:
        width = max(map(len, self.metrics), default=0)
        lines = [f"{name:<{width}}  {100 * value:6.2f}" for name, value in self.metrics.items()]
        return "\n".join([*lines, self._counts()])

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={100 * value:.2f}" for name, value in self.metrics.items())
        return f"Scores({shown}; {self._counts()})"

    def _counts(self) -> str:
        n, u = len(self.query), len(self.skipped)
        lone = f", {u} {'query' if u == 1 else 'queries'} without a relevant item" if u else ""
        return f"{n} {'query' if n == 1 else 'queries'} scored{lone}"


def difference_interval(a: Scores, b: Scores, name: str, *, over: str = "query", level: float = 0.95, seed: int = 0) -> Interval:
    """Return the bootstrap interval of the mean difference a - b on the same queries (paired: shared difficulty cancels).

    Raises:
        DataError: the two did not score the same queries with the same labels.
    """
    same = len(a.query) == len(b.query) and bool((a.query == b.query).all())
    if not same or [a.class_names[i] for i in integers(a.label)] != [b.class_names[i] for i in integers(b.label)]:
        raise DataError(
            f"the scores are of {len(a.query)} and {len(b.query)} queries that differ in rows or labels: pair like with like."
        )
    return bootstrap_interval(a.values_of(name) - b.values_of(name), a.label, over=over, level=level, seed=seed)
