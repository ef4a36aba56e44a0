"""Scores as the commands print them."""

from collections.abc import Mapping
from typing import Any

from kinfold.commands.output import percent, print_json, print_table
from kinfold.evaluation.scores import Scores
from kinfold.evaluation.summary import headline, summary


def show(scores: Mapping[str, Scores], *, title: str, as_json: bool, facts: Mapping[str, Any] | None = None) -> None:
    """Print scores in percent, a column per level, with the interval of the first metric; or as JSON."""
    if as_json:
        print_json({**summary(scores), **(facts or {})})
        return
    first = next(iter(scores.values()))
    names = dict.fromkeys(name for found in scores.values() for name in found.metrics)
    rows = [[name, *(_cell(found, name) for found in scores.values())] for name in names]
    rows.append(["queries", *(str(len(found.query)) for found in scores.values())])
    rows.append(["skipped (nothing to find)", *(str(len(found.skipped)) for found in scores.values())])
    print_table(["%", *scores], rows, title=title)
    found = headline(first)
    if found is not None and found[1]:
        name, ends = found
        nouns = {"query": "queries", "class": "classes"}
        spans = [f"{percent(low)} to {percent(high)} over {nouns[over]}" for over, (low, high) in ends.items()]
        print(f"{name}, 95 % interval: {', '.join(spans)}")


def _cell(scores: Scores, name: str) -> str:
    return percent(scores.metrics[name]) if name in scores.metrics else "–"  # coarse levels may have fewer
