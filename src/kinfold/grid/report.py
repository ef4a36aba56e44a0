"""The tables of a grid: rows for each data set, and the files that hold them."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kinfold.atomic import write_text
from kinfold.comparison.compare import Row, compare
from kinfold.comparison.runs import Group, read_run
from kinfold.comparison.table import CAPTION, csv_text, markdown, plain_rows
from kinfold.grid.file import Grid
from kinfold.grid.plan import Cell
from kinfold.grid.run import Outcome
from kinfold.grid.select import Choice

Tabled = list[tuple[str, list[Row]]]


def tables_of(grid: Grid, outcomes: Mapping[Cell, Outcome], metrics: Sequence[str], level: str) -> Tabled:
    """Return the rows of each data set on a level, the base first."""
    found = []
    for dataset in grid.datasets:
        groups = [
            _group(
                variant.name,
                variant.note,
                {c: o for c, o in outcomes.items() if (c.dataset, c.variant) == (dataset, variant.name)},
            )
            for variant in grid.variants
        ]
        present = [group for group in groups if group.runs or group.failed]
        found.append((dataset, compare(present[0], present[1:], metrics=metrics, level=level)))
    return found


def write_tables(
    file: Path, grid: Grid, tabled: Tabled, metrics: Sequence[str], choices: Mapping[str, Choice], level: str
) -> dict[str, Any]:
    """Write `.md`, `.csv` and `.json` beside each other, each whole or not at all; return what the JSON file holds.

    Args:
        file: their common name, without an ending.
        grid: the grid.
        tabled: rows by data set.
        metrics: to show.
        choices: what was chosen, by data set.
        level: of the labels; the name of the file carries that of any but the grid's first.
    """
    values = {
        "grid": grid.name,
        "level": level,
        "metrics": list(metrics),
        "caption": CAPTION,
        "choices": {dataset: vars(choice) for dataset, choice in choices.items()},
        "datasets": {dataset: plain_rows(rows) for dataset, rows in tabled},
    }
    texts = {"json": json.dumps(values, indent=2) + "\n", "csv": csv_text(tabled, metrics), "md": _page(values, tabled, choices)}
    place = "" if level == grid.levels[0] else "." + re.sub(r"[^\w.+-]+", "-", level)
    for ending, text in texts.items():
        write_text(file.with_name(f"{file.name}{place}.{ending}"), text)
    return values


def _page(values: Mapping[str, Any], tabled: Tabled, choices: Mapping[str, Choice]) -> str:
    parts = [f"# {values['grid']}\n", f"{CAPTION} Level: {values['level']}.\n"]
    for dataset, rows in tabled:
        if dataset in choices:
            parts.append(f"{dataset}: {choices[dataset]}\n".removeprefix(": "))
        parts.append(markdown(rows, values["metrics"], title=dataset))
    return "\n".join(parts)


def _group(name: str, note: str, outcomes: Mapping[Cell, Outcome]) -> Group:
    runs = {cell.seed: read_run(cell.folder, cell.config.evaluation.split) for cell, o in outcomes.items() if o.kind != "failed"}
    failed = {cell.seed: o.reason for cell, o in outcomes.items() if o.kind == "failed"}
    return Group(name, runs, note=note, failed=failed)
