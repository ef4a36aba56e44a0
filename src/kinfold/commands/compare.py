"""`kinfold compare`: measured runs → their differences with paired intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kinfold.commands.output import print_json, print_table
from kinfold.comparison.compare import compare
from kinfold.comparison.identity import described, differing
from kinfold.comparison.runs import Group, grouped, read_run
from kinfold.comparison.table import CAPTION, columns_of, lines_of, plain_rows, remarks_of
from kinfold.data.table import SPLITS
from kinfold.errors import ConfigError, did_you_mean


@dataclass(frozen=True)
class CompareOptions:
    """What can be set on the command line; texts as they were typed."""

    split: str = "test"
    level: str = "label"
    metrics: str = "recall_at_1,map_at_r"
    factor: Sequence[str] = ()
    as_json: bool = False


def compare_command(folders: Sequence[Path], options: CompareOptions) -> None:
    """Print a row for the first configuration and one for each other with its paired differences."""
    if options.split not in SPLITS:
        raise ConfigError(f"--split {options.split!r}: {did_you_mean(options.split, SPLITS)}")
    metrics = tuple(name.strip() for name in options.metrics.split(","))
    base, *others = grouped((read_run(folder, options.split) for folder in folders), factor=options.factor)
    if not others:
        raise ConfigError("there is nothing to compare: the runs differ by their seed only; name a run of another configuration.")
    rows = compare(base, others, metrics=metrics, level=options.level)
    facts = {other.name: _facts(base, other) for other in others}
    if options.as_json:
        protocol = next(iter(base.runs.values())).per_query.protocol
        print_json({"protocol": protocol, "level": options.level, "rows": plain_rows(rows), "differs": facts})
        return
    print_table(columns_of(metrics), lines_of(rows, metrics))
    for name, text in facts.items():
        print(f"{name} differs in {text}")
    for remark in remarks_of(rows):
        print(remark)
    print(f"{CAPTION} Level: {options.level}.")


def _facts(base: Group, other: Group) -> str:
    """Return all settings that differ, with both values."""
    return described(base.settings, other.settings, differing(base.settings, other.settings))
