"""A comparison as people and programs read it: columns of text, Markdown, CSV, plain values."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kinfold.comparison.compare import Difference, Row, Value

CAPTION = (
    "Percent. ± is the standard deviation over seeds. Differences to the first row are paired, [95 % bootstrap interval], 2000 resamples: "
    "seeds and queries drawn again; in the column after it seeds and whole classes."
)
ONE_SEED = "One seed: the intervals say how the queries or classes vary, not how another training run would."
FEW_SEEDS = "Fewer than five seeds: intervals over seeds are too short, see docs/intervals.md."


def columns_of(metrics: Sequence[str]) -> list[str]:
    """Return the heads of the columns."""
    return ["", "seeds", *(head for metric in metrics for head in (metric, "difference", "over classes")), "minutes"]


def lines_of(rows: Sequence[Row], metrics: Sequence[str]) -> list[list[str]]:
    """Return the cells of each row as text."""
    return [_line(row, metrics, is_base=place == 0) for place, row in enumerate(rows)]


def remarks_of(rows: Sequence[Row]) -> list[str]:
    """Return the lines below a table: notes, what failed, what makes a comparison unfair, how many seeds stand behind it."""
    remarks = [f"{row.name}: {row.note}" for row in rows if row.note]
    for row in rows:
        remarks += [f"{row.name}, seed {seed} failed: {reason}" for seed, reason in row.failed.items()]
        if row.besides:
            listed = ", ".join(f"{key} ({_json(one)}, here {_json(own)})" for key, (one, own) in row.besides.items())
            remarks.append(f"{row.name} differs besides: {listed}")
        shared = next((difference.seeds for difference in row.differences.values()), row.seeds)
        if set(shared) != set(row.seeds) or (row.differences and set(shared) != set(rows[0].seeds)):
            remarks.append(f"{row.name}: the difference is over the {len(shared)} common seed(s) {', '.join(map(str, shared))}")
    n_seeds = [len(difference.seeds) for row in rows for difference in row.differences.values()]
    if 1 in n_seeds:
        remarks.append(ONE_SEED)
    if any(1 < n < 5 for n in n_seeds):
        remarks.append(FEW_SEEDS)
    return remarks


def markdown(rows: Sequence[Row], metrics: Sequence[str], *, title: str = "") -> str:
    """Return a Markdown table with its remarks."""
    columns = columns_of(metrics)
    lines = [f"| {' | '.join(cells)} |" for cells in (columns, ["---"] * len(columns), *lines_of(rows, metrics))]
    parts = [f"## {title}"] if title else []
    parts += ["\n".join(lines), *(["\n".join(f"- {remark}" for remark in remarks_of(rows))] if remarks_of(rows) else [])]
    return "\n\n".join(parts) + "\n"


def csv_text(tables: Sequence[tuple[str, Sequence[Row]]], metrics: Sequence[str]) -> str:
    """Return one line per data set, row and metric; shares, not percent; nothing where there is no number."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    ends = ("low", "high", "class_low", "class_high")
    writer.writerow(["dataset", "name", "metric", "seeds", "mean", "deviation", "difference", *ends, "minutes", "failed", "note"])
    for dataset, rows in tables:
        for row in rows:
            for metric in metrics:
                value, difference = row.values.get(metric), row.differences.get(metric)
                numbers = [value.mean, value.deviation] if value else [None, None]
                numbers += _numbers(difference) if difference else [None] * 5
                writer.writerow([dataset, row.name, metric, len(row.seeds), *numbers, row.minutes, len(row.failed), row.note])
    return out.getvalue()


def plain_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows as JSON values: shares, not percent."""
    return [asdict(row) | {"remarks": remarks_of([row])} for row in rows]


def _numbers(difference: Difference) -> list[float | None]:
    return [difference.mean, *difference.over_queries, *(difference.over_classes or (None, None))]


def _line(row: Row, metrics: Sequence[str], *, is_base: bool) -> list[str]:
    seeds = f"{len(row.seeds)} of {len(row.seeds) + len(row.failed)}" if row.failed else str(len(row.seeds))
    cells = [row.name, seeds]
    for metric in metrics:
        cells += [_value(row.values.get(metric)), *_difference(row.differences.get(metric), is_base=is_base)]
    return [*cells, "" if row.minutes is None else f"{row.minutes:.{1 if row.minutes >= 1 else 2}f}"]


def _value(value: Value | None) -> str:
    if value is None:
        return "failed"
    return f"{100 * value.mean:.1f}" + ("" if value.deviation is None else f" ± {100 * value.deviation:.1f}")


def _difference(difference: Difference | None, *, is_base: bool) -> tuple[str, str]:
    if difference is None:
        return ("", "") if is_base else ("–", "–")
    low, high = difference.over_queries
    text = f"{100 * difference.mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"
    classes = difference.over_classes
    return text, "–" if classes is None else f"[{100 * classes.low:+.1f}, {100 * classes.high:+.1f}]"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
