"""Scores as the commands print and keep them."""

from collections.abc import Mapping
from typing import Any

from kinfold.commands.output import percent, print_json, print_table
from kinfold.evaluation.scores import Scores


def plain(scores: Mapping[str, Scores]) -> dict[str, dict[str, float]]:
    """Return the numbers alone: level → metric → value, with the counts."""
    return {
        level: {**found.metrics, "n_scored": len(found.query), "n_skipped": len(found.skipped)} for level, found in scores.items()
    }


def record(scores: Mapping[str, Scores], **facts: Any) -> dict[str, Any]:
    """Return what is kept of an evaluation: numbers, settings, intervals of Recall@1 over queries and over classes."""
    kept: dict[str, Any] = {**plain(scores), **facts}
    first = next(iter(scores.values()))
    kept["settings"] = dict(first.settings)
    name = next(iter(first.per_query), None)
    if name is not None:
        kept["interval"] = {over: [name, *_ends(first, name, over)] for over in ("query", "class")}
    return kept


def show(scores: Mapping[str, Scores], *, title: str, as_json: bool, facts: Mapping[str, Any] | None = None) -> None:
    """Print scores in percent, a column per level, with the interval of the first metric; or as JSON."""
    if as_json:
        print_json({**record(scores), **(facts or {})})
        return
    names = list(next(iter(scores.values())).metrics)
    rows = [[name, *(percent(found.metrics[name]) for found in scores.values())] for name in names]
    rows.append(["queries", *(str(len(found.query)) for found in scores.values())])
    rows.append(["skipped (nothing to find)", *(str(len(found.skipped)) for found in scores.values())])
    print_table(["%", *scores], rows, title=title)
    first = next(iter(scores.values()))
    name = next(iter(first.per_query), None)
    if name is not None:
        low, high = _ends(first, name, "query")
        class_low, class_high = _ends(first, name, "class")
        print(
            f"{name}, 95 % interval: {percent(low)} to {percent(high)} over queries, "
            f"{percent(class_low)} to {percent(class_high)} over classes"
        )


def _ends(scores: Scores, name: str, over: Any) -> tuple[float, float]:
    interval = scores.interval(name, over=over)
    return float(interval.low), float(interval.high)
