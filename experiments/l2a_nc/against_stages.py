"""Compares L2A-NC with what its two stages do alone: fresh optimisers in the middle of a run, and no generated class.

run:  python experiments/l2a_nc/against_stages.py [--runs runs]
Reads the run folders of the grids; writes experiments/results/l2a_nc/against_stages.json: paired differences with intervals.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from kinfold.comparison.compare import compare
from kinfold.comparison.runs import Group, read_run
from kinfold.comparison.table import plain_rows
from kinfold.grid.file import Grid, read_grid

HERE = Path(__file__).parent
RESULT = HERE.parent / "results" / "l2a_nc" / "against_stages.json"
BASE, OTHERS = "stages", ("ec", "nc")


def grids() -> Iterator[Grid]:
    """Yield the grids that have a row of stages alone."""
    for file in sorted(HERE.glob("*.toml")):
        if f"[variants.{BASE}]" in file.read_text(encoding="utf-8"):
            yield read_grid(file)


def main() -> None:
    """Compare every data set of every grid, write the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder that holds l2a_nc_cub, l2a_nc_cars, …")
    folder = parser.parse_args().runs
    found = {}
    for grid in grids():
        if not (folder / grid.folder.name / "table.json").exists():
            continue
        variants = {each.name: each for each in grid.variants}
        for dataset in grid.datasets:
            groups = []
            for name in (BASE, *(other for other in OTHERS if other in variants)):
                place = folder / grid.folder.name / (dataset if len(grid.datasets) > 1 else "") / name
                runs = {seed: read_run(place / f"seed-{seed}", "test") for seed in variants[name].seeds}
                groups.append(Group(name, runs, note=variants[name].note))
            rows = compare(groups[0], groups[1:], metrics=grid.metrics, level="label")
            found[f"{grid.name}/{dataset}"] = plain_rows(rows)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for name, rows in found.items():
        for row in rows[1:]:
            print(name, row["name"], {metric: round(100 * each["mean"], 2) for metric, each in row["differences"].items()})


if __name__ == "__main__":
    main()
