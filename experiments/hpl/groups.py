"""What did the runs of the HPL grids learn? Agreement of their groups with the given levels, and how many classes moved.

run:  KINFOLD_DATA=PATH/TO/photographs python experiments/hpl/groups.py [--runs runs]
Reads the logs of the run folders; writes experiments/results/hpl/groups.json: means over seeds.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

from kinfold.build import build_table
from kinfold.config import DataSettings
from kinfold.engine.run import Run
from kinfold.learned_groups import assignment_moves, report_learned

RESULT = Path(__file__).parents[1] / "results" / "hpl" / "groups.json"
GRIDS = ("cub", "cars", "grocery")


def main() -> None:
    """Read all runs of the frozen lane, write the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder that holds hpl_cub, hpl_cars, …")
    folder = parser.parse_args().runs
    found = {f"{grid}/{name}": row for grid in GRIDS for name, row in variants(folder / f"hpl_{grid}")}
    RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


def variants(folder: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield, for each base loss and variant with groups, AMI by given level, share of seeds with p < 0.05, and moves."""
    table = None
    for place in sorted(folder.glob("*/*/")):
        runs = [Run(each) for each in sorted(place.glob("seed-*")) if assignment_moves(Run(each))]
        if not runs:
            continue
        table = table or build_table(DataSettings(**runs[0].config()["data"]))
        reports = [report_learned(run, table) for run in runs]
        moved = [sum(row.n_moved or 0 for row in assignment_moves(run) if row.level == "level_1") for run in runs]
        levels = {}
        for rows in zip(*([row for row in report if row.level == "level_1"] for report in reports), strict=True):
            agreements = [row.agreement for row in rows]
            levels[rows[0].other] = {
                "ami": round(mean(each.ami for each in agreements), 3),
                "seeds_with_p_below_0.05": sum(each.p_value < 0.05 for each in agreements),
            }
        yield f"{place.parent.name}/{place.name}", {"seeds": len(runs), "moves_after_first_epoch": mean(moved), "levels": levels}


if __name__ == "__main__":
    main()
