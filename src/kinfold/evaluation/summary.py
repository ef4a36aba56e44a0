"""Scores as plain numbers: what is printed, and what is kept of an evaluation."""

from collections.abc import Mapping

from kinfold.core.distinct import distinct
from kinfold.evaluation.scores import Scores

Headline = tuple[str, dict[str, tuple[float, float]]]


def plain(scores: Mapping[str, Scores]) -> dict[str, dict[str, float]]:
    """Return the numbers alone: level → metric → value, with the counts."""
    return {
        level: {**found.metrics, "n_scored": len(found.query), "n_skipped": len(found.skipped)} for level, found in scores.items()
    }


def summary(scores: Mapping[str, Scores], **facts: object) -> dict[str, object]:
    """Return what is kept of an evaluation: numbers, settings, intervals of the first metric over queries and over classes."""
    first = next(iter(scores.values()))
    kept: dict[str, object] = {**plain(scores), **facts, "settings": dict(first.settings)}
    found = headline(first)
    if found is not None:
        name, ends = found
        kept["interval"] = {over: [name, low, high] for over, (low, high) in ends.items()}
    return kept


def headline(scores: Scores) -> Headline | None:
    """Return the first metric that has a value per query, with its intervals over `query` and over `class`.

    An interval needs two things to draw from: with one query, or one class, it is left out.
    """
    name = next(iter(scores.per_query), None)
    if name is None:
        return None
    sizes = {"query": len(scores.query), "class": len(distinct(scores.label)[0])}
    ends = {over: scores.interval(name, over=over) for over, n in sizes.items() if n > 1}
    return name, {over: (found.low, found.high) for over, found in ends.items()}
