"""What the evaluation by a hierarchy found: recall by level, heights, hierarchical precision."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan

from jaxtyping import Float, Int
from torch import Tensor

from kinfold.errors import ConfigError, did_you_mean
from kinfold.evaluation.intervals import Interval, bootstrap_interval
from kinfold.evaluation.scores import Scores


@dataclass(frozen=True, eq=False)
class HierarchyScores:
    """The result of `score_hierarchy`.

    Attributes:
        recall: recall@k by level, `label` first; queries without anything to find on a level are left out there.
        metrics: `lca_height_at_k` and `hierarchical_precision_at_k` for each k, and `mistake_severity`; NaN where there is no query
            to take the mean over.
        per_query: one value for each query by metric, but for `mistake_severity`; NaN where a query has none.
        query: row of each query that can find anything at all, ascending.
        label: class of each of them, as its number in the hierarchy.
        height: of the root: the largest value of a height.
        n_mistakes: queries whose nearest item is of another class (with ties: their expected number).
    """

    recall: Mapping[str, Scores]
    metrics: Mapping[str, float]
    per_query: Mapping[str, Float[Tensor, " s"]]
    query: Int[Tensor, " s"]
    label: Int[Tensor, " s"]
    height: int
    n_mistakes: float

    def interval(self, name: str, over: str = "query", level: float = 0.95, seed: int = 0) -> Interval:
        """Return the bootstrap interval of a metric, drawing queries or whole classes again (see `bootstrap_interval`).

        Raises:
            ConfigError: there is no such metric, or it has no value per query.
        """
        if name not in self.per_query:
            raise ConfigError(f"no per-query values of `{name}`: {did_you_mean(name, self.per_query)}")
        has_value = ~self.per_query[name].isnan()
        return bootstrap_interval(self.per_query[name][has_value], self.label[has_value], over=over, level=level, seed=seed)

    def to_dict(self) -> dict[str, object]:
        """Return the numbers alone, as JSON holds them: `None` stands for no number."""
        return {
            "recall": {
                level: {name: _plain(value) for name, value in found.metrics.items()} for level, found in self.recall.items()
            },
            "metrics": {name: _plain(value) for name, value in self.metrics.items()},
            "height": self.height,
            "n_queries": len(self.query),
            "n_skipped": {level: len(found.skipped) for level, found in self.recall.items()},
            "n_mistakes": self.n_mistakes,
        }

    def __str__(self) -> str:
        ks = [name.removeprefix("lca_height_at_") for name in self.metrics if name.startswith("lca_height_at_")]
        rows = [["", *(f"@{k}" for k in ks)]]
        for level, found in self.recall.items():
            rows.append([f"recall, {level} (%)", *(_shown(100 * found.metrics[f"recall_at_{k}"], 2) for k in ks)])
        precision = [100 * self.metrics[f"hierarchical_precision_at_{k}"] for k in ks]
        rows.append(["hierarchical precision (%)", *(_shown(value, 2) for value in precision)])
        rows.append([f"LCA height (0 to {self.height})", *(_shown(self.metrics[f"lca_height_at_{k}"], 3) for k in ks)])
        widths = [max(len(row[column]) for row in rows) for column in range(len(ks) + 1)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        ]
        severity = _shown(self.metrics["mistake_severity"], 3)
        of = f"mean LCA height where the nearest is of another class ({self.n_mistakes:,.0f} of {len(self.query):,} queries)"
        return "\n".join([*lines, f"mistake severity {severity}: {of}"])


def _plain(value: float) -> float | None:
    return None if isnan(value) else value


def _shown(value: float, digits: int) -> str:
    return "–" if isnan(value) else f"{value:.{digits}f}"
