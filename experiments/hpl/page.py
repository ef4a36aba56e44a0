"""Puts the recorded tables of the HPL grids into docs/methods/hpl.md; `--runs FOLDER` takes them from the run folders first.

Usage: python experiments/hpl/page.py [--runs runs]
"""

import argparse
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kinfold.grid.file import read_grid

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "hpl"
PAGE = HERE.parents[1] / "docs" / "methods" / "hpl.md"
BEGIN, END = "<!-- evidence -->", "<!-- end of evidence -->"
METRICS = {"recall_at_1": "Recall@1", "r_precision": "R-Precision", "map_at_r": "MAP@R"}
NAMES = {
    "cub": "CUB-200-2011, 100 unseen species",
    "cars": "half of Cars-196, 98 unseen models",
    "grocery": "Grocery Store, query → gallery, 40 unseen products",
    "many_classes": "Glyphs, 415 characters of unseen writing systems",
}
LANES = {
    "": "frozen lane",
    "_random_head": "frozen trunk, random head of 128 numbers, learning rate 3e-3",
    "_fine_tuned": "fine-tuned lane",
}
BASES = {"anchor": "Proxy Anchor", "nca": "Proxy-NCA"}


def take(runs: Path) -> None:
    """Copy the tables that `kinfold grid` wrote into the run folders to the recorded results."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for grid in grids():
        for file in sorted((runs / f"hpl_{grid}").glob("table*")):
            shutil.copyfile(file, RESULTS / (grid + file.name.removeprefix("table")))


def grids() -> list[str]:
    """Return the names of the grids beside this file."""
    return [file.stem for file in sorted(HERE.glob("*.toml")) if "[base]" in file.read_text(encoding="utf-8")]


def section() -> str:
    """Return the page's section: a table for each data set, lane and base."""
    return "\n".join([*(part for name in NAMES for lane in LANES for part in tables(name, lane)), *groups()])


def groups() -> Iterator[str]:
    """Yield the table of what was learned: agreement of the groups with given levels (experiments/hpl/groups.py)."""
    file = RESULTS / "groups.json"
    if not file.exists():
        return
    lines = ["### What the groups hold", ""]
    lines += ["| data, base | groups | moves | AMI with the given levels (seeds with p < 0.05) |", "| --- | --- | --- | --- |"]
    for key, row in json.loads(file.read_text(encoding="utf-8")).items():
        grid, base, variant = key.split("/")
        if variant.startswith("given"):  # they agree with themselves
            continue
        notes = {each.name: each.note for each in read_grid(HERE / f"{grid}.toml").variants}
        levels = [
            f"{level} {found['ami']:.2f} ({found['seeds_with_p_below_0.05']} of {row['seeds']})"
            for level, found in row["levels"].items()
        ]
        lines.append(f"| {grid}, {BASES[base]} | {notes[variant]} | {row['moves_after_first_epoch']:.1f} | {', '.join(levels)} |")
    yield "\n".join(lines) + "\n"


def tables(name: str, lane: str) -> Iterator[str]:
    """Yield the tables of one data set in one lane, one for each base loss."""
    file = RESULTS / f"{name}{lane}.json"
    if not file.exists():
        return
    main = json.loads(file.read_text(encoding="utf-8"))
    coarse = {
        path.suffixes[0][1:]: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(RESULTS.glob(f"{name}{lane}.*.json"))
    }
    for dataset, rows in main["datasets"].items():
        base = dataset or "anchor"
        heads = ["", *METRICS.values(), *(f"Recall@1, {level}" for level in coarse)]
        how = "from scratch" if name == "many_classes" else LANES[lane]
        lines = [f"### {NAMES[name]}: {BASES[base]}, {how}, {len(rows[0]['seeds'])} seeds", ""]
        lines += [f"| {' | '.join(heads)} |", f"| {' | '.join(['---'] * len(heads))} |"]
        for place, row in enumerate(rows):
            cells = [row["note"] or row["name"], *(cell(row, metric) for metric in METRICS)]
            cells += [cell(table["datasets"][dataset][place], "recall_at_1") for table in coarse.values()]
            lines.append(f"| {' | '.join(cells)} |")
        yield "\n".join(lines) + "\n"


def cell(row: Mapping[str, Any], metric: str) -> str:
    """Return a mean and, below it, its difference to the base with the interval over seeds and queries."""
    mean, difference = 100 * row["values"][metric]["mean"], row["differences"].get(metric)
    if difference is None:
        return f"{mean:.1f}"
    low, high = (100 * end for end in difference["over_queries"])
    return f"{mean:.1f}, {100 * difference['mean']:+.2f} [{low:+.2f}, {high:+.2f}]"


def with_section(text: str) -> str:
    """Return the page's text with the section put between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{section()}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Take new tables if asked to, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, help="folder that holds hpl_cub, hpl_cars, …")
    arguments = parser.parse_args()
    if arguments.runs:
        take(arguments.runs)
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
