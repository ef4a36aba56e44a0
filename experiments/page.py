"""Puts the recorded tables of a method's grids into its page; `--runs FOLDER` takes them from the run folders first.

Usage: python experiments/page.py hpl|l2a_nc [--runs runs]
Each method's folder has a page.toml: the page, the headings of its grids in their order, and the names of their data sets; where it has
a further.py, that adds sections of its own.
"""

import argparse
import json
import runpy
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BEGIN, END = "<!-- evidence -->", "<!-- end of evidence -->"
METRICS = {"recall_at_1": "Recall@1", "r_precision": "R-Precision", "map_at_r": "MAP@R"}


def methods() -> list[str]:
    """Return the folders that belong to a page."""
    return [file.parent.name for file in sorted(HERE.glob("*/page.toml"))]


def page_of(method: str) -> Path:
    """Return the page of a method."""
    return HERE.parent / settings(method)["page"]


def settings(method: str) -> dict[str, Any]:
    """Return what the method's page.toml says."""
    return tomllib.loads((HERE / method / "page.toml").read_text(encoding="utf-8"))


def results(method: str) -> Path:
    """Return the folder of a method's recorded tables."""
    return HERE / "results" / method


def take(method: str, runs: Path) -> None:
    """Copy the tables that `kinfold grid` wrote into the run folders to the recorded results."""
    results(method).mkdir(parents=True, exist_ok=True)
    for file in sorted((HERE / method).glob("*.toml")):
        grid = tomllib.loads(file.read_text(encoding="utf-8"))
        if "base" not in grid:
            continue
        for table in sorted((runs / Path(grid["folder"]).name).glob("table*")):
            shutil.copyfile(table, results(method) / (file.stem + table.name.removeprefix("table")))


def section(method: str) -> str:
    """Return the page's section: a table for each grid and data set, then what further.py adds."""
    said = settings(method)
    parts = [part for grid, heading in said["grids"].items() for part in tables(method, grid, heading, said["datasets"])]
    further = HERE / method / "further.py"
    if further.exists():
        parts += runpy.run_path(str(further))["sections"](results(method))
    return "\n".join(parts)


def tables(method: str, grid: str, heading: str, names: Mapping[str, str]) -> Iterator[str]:
    """Yield the tables of one grid, one for each of its data sets."""
    file = results(method) / f"{grid}.json"
    if not file.exists():
        return
    main = json.loads(file.read_text(encoding="utf-8"))
    others = sorted(results(method).glob(f"{grid}.*.json"))
    coarse = {path.suffixes[0][1:]: json.loads(path.read_text(encoding="utf-8")) for path in others}
    for dataset, rows in main["datasets"].items():
        metrics = {name: head for name, head in METRICS.items() if name in rows[0]["values"]}
        heads = ["", *metrics.values(), *(f"Recall@1, {level}" for level in coarse)]
        title = heading.replace("{}", names.get(dataset, dataset))
        lines = [f"### {title}, {len(rows[0]['seeds'])} seeds", ""]
        lines += [f"| {' | '.join(heads)} |", f"| {' | '.join(['---'] * len(heads))} |"]
        for place, row in enumerate(rows):
            cells = [row["note"] or row["name"], *(cell(row, metric) for metric in metrics)]
            cells += [cell(table["datasets"][dataset][place], "recall_at_1") for table in coarse.values()]
            lines.append(f"| {' | '.join(cells)} |")
        yield "\n".join(lines) + "\n"


def cell(row: Mapping[str, Any], metric: str) -> str:
    """Return a mean and, beside it, its difference to the base with the interval over seeds and queries."""
    mean, difference = 100 * row["values"][metric]["mean"], row["differences"].get(metric)
    if difference is None:
        return f"{mean:.1f}"
    low, high = (100 * end for end in difference["over_queries"])
    return f"{mean:.1f}, {100 * difference['mean']:+.2f} [{low:+.2f}, {high:+.2f}]"


def with_section(method: str, text: str) -> str:
    """Return the page's text with the section put between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{section(method)}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Take new tables if asked to, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method", choices=methods())
    parser.add_argument("--runs", type=Path, help="folder that holds the grids' run folders")
    arguments = parser.parse_args()
    if arguments.runs:
        take(arguments.method, arguments.runs)
    page = page_of(arguments.method)
    page.write_text(with_section(arguments.method, page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
