"""`kinfold ls`: names for configurations, and runs."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from kinfold.commands.output import print_json, print_table
from kinfold.core.divergence import DIVERGENCES
from kinfold.core.mining import MINERS
from kinfold.core.similarity import SIMILARITIES
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, did_you_mean
from kinfold.evaluation.metrics import METRICS
from kinfold.losses import LOSSES
from kinfold.objectives import OBJECTIVES

Row = tuple[str, str]


def ls_command(what: str, pattern: str, *, as_json: bool) -> None:
    """Print the names of a kind with one line on each."""
    if what not in LISTS:
        raise ConfigError(f"nothing to list under {what!r}: {did_you_mean(what, LISTS)}")
    rows = LISTS[what](pattern)
    if as_json:
        print_json(dict(rows))
    elif rows:
        print_table([what, ""], rows, numbers=False)


def _first_lines(table: Mapping[str, object], pattern: str) -> list[Row]:
    """Return the names that hold a pattern, each with the first line of what it names."""
    return [(name, (thing.__doc__ or "").strip().splitlines()[0]) for name, thing in sorted(table.items()) if pattern in name]


def _trunks(pattern: str) -> list[Row]:
    import timm

    from kinfold.models.offline_weights import OFFLINE

    own = [("convnet", "four small blocks, trained from scratch")]
    rows = own + [
        (name, "weights without a download (extra `offline`)" if name in OFFLINE else "timm") for name in timm.list_models()
    ]
    return [row for row in rows if pattern in row[0]]


def _runs(folder: str) -> list[Row]:
    rows = []
    for run in (Run(place) for place in sorted(Path(folder or "runs").glob("*/"))):
        if not run.exists:
            continue
        recall = run.metrics().get("test", {}).get("label", {}).get("recall_at_1")
        state = "finished" if (run.model / "config.json").exists() else "not finished"
        rows.append((str(run.folder), state if recall is None else f"{state}, recall@1 {100 * recall:.1f}"))
    return rows


LISTS: dict[str, Callable[[str], list[Row]]] = {
    "losses": partial(_first_lines, LOSSES),
    "objectives": partial(_first_lines, OBJECTIVES),
    "divergences": partial(_first_lines, DIVERGENCES),
    "miners": partial(_first_lines, MINERS),
    "similarities": partial(_first_lines, SIMILARITIES),
    "trunks": _trunks,
    "metrics": partial(_first_lines, METRICS),
    "runs": _runs,
}
