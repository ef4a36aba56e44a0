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
    """Return what is kept of an evaluation: numbers, settings, intervals of the first metric over queries and over classes."""
    first = next(iter(scores.values()))
    kept: dict[str, Any] = {**plain(scores), **facts, "settings": dict(first.settings)}
    headline = _headline(first)
    if headline is not None:
        name, ends = headline
        kept["interval"] = {over: [name, low, high] for over, (low, high) in ends.items()}
    return kept


def show(scores: Mapping[str, Scores], *, title: str, as_json: bool, facts: Mapping[str, Any] | None = None) -> None:
    """Print scores in percent, a column per level, with the interval of the first metric; or as JSON."""
    if as_json:
        print_json({**record(scores), **(facts or {})})
        return
    first = next(iter(scores.values()))
    rows = [[name, *(percent(found.metrics[name]) for found in scores.values())] for name in first.metrics]
    rows.append(["queries", *(str(len(found.query)) for found in scores.values())])
    rows.append(["skipped (nothing to find)", *(str(len(found.skipped)) for found in scores.values())])
    print_table(["%", *scores], rows, title=title)
    headline = _headline(first)
    if headline is not None:
        name, ends = headline
        spans = [
            f"{percent(low)} to {percent(high)} over {noun}"
            for noun, (low, high) in zip(("queries", "classes"), ends.values(), strict=True)
        ]
        print(f"{name}, 95 % interval: {', '.join(spans)}")


def _headline(scores: Scores) -> tuple[str, dict[str, tuple[float, float]]] | None:
    """Return the first metric that has a value per query, with its intervals over queries and over classes."""
    name = next(iter(scores.per_query), None)
    if name is None:
        return None
    over_query, over_class = scores.interval(name, over="query"), scores.interval(name, over="class")
    return name, {"query": (over_query.low, over_query.high), "class": (over_class.low, over_class.high)}
