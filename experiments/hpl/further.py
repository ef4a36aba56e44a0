"""The page's further table: agreement of the groups with given levels (recorded by groups.py)."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

from kinfold.grid.file import read_grid

HERE = Path(__file__).parent


def sections(results: Path) -> Iterator[str]:
    """Yield the table of what the groups hold."""
    file = results / "groups.json"
    if not file.exists():
        return
    names = tomllib.loads((HERE / "page.toml").read_text(encoding="utf-8"))["datasets"]
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
        lines.append(f"| {grid}, {names[base]} | {notes[variant]} | {row['moves_after_first_epoch']:.1f} | {', '.join(levels)} |")
    yield "\n".join(lines) + "\n"
