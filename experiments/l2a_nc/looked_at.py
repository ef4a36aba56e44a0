"""Trains one run of each method and asks what its generated classes are like: `kinfold novel show` and `align`.

run:  KINFOLD_DATA=PATH/TO/photographs python experiments/l2a_nc/looked_at.py [--runs runs/l2a_nc_looked_at]
Six runs of the frozen lane, half a minute each; writes experiments/results/l2a_nc/looked_at.json.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULT = HERE.parent / "results" / "l2a_nc" / "looked_at.json"
CELLS = [(dataset, loss, variant) for dataset in ("cub", "cars") for loss in ("anchor", "nca") for variant in ("nc", "ps")]


def kinfold(*arguments: str) -> str:
    """Return what a command prints."""
    return subprocess.run([sys.executable, "-m", "kinfold.cli", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def overrides(values: dict[str, Any], prefix: str = "") -> list[str]:
    """Return a table of settings as key=value."""
    found = []
    for key, value in values.items():
        if isinstance(value, dict):
            found += overrides(value, f"{prefix}{key}.")
        elif key not in ("note", "seeds"):
            found.append(f"{prefix}{key}={json.dumps(value)}")
    return found


def main() -> None:
    """Train what is missing, ask, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs") / "l2a_nc_looked_at")
    folder = parser.parse_args().runs
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "empty.toml").write_text("", encoding="utf-8")
    found = {}
    for dataset, loss, variant in CELLS:
        grid = tomllib.loads((HERE / f"{dataset}.toml").read_text(encoding="utf-8"))
        run = folder / f"{dataset}_{loss}_{variant}"
        said = [*overrides(grid["base"]), *overrides(grid["datasets"][loss]), *overrides(grid["variants"][variant])]
        kinfold("train", str(folder / "empty.toml"), f"run={run}", *said)
        (shown,) = json.loads(kinfold("novel", "show", str(run), "--json"))["runs"]
        align = json.loads(kinfold("novel", "align", str(run), "--json"))["rows"] if variant == "nc" else None
        name = f"{grid['variants'][variant]['note'].split(':')[0]} on {dataset}, {grid['datasets'][loss]['objective']['loss']}"
        found[name] = {"show": shown, "align": align}
        found[name]["show"].pop("run")
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(name, flush=True)


if __name__ == "__main__":
    main()
