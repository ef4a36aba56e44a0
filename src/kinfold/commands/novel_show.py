"""`kinfold novel show`: what runs logged about generated classes, now and over training."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kinfold.commands.figure_data import short_names
from kinfold.commands.output import print_json, print_table, say
from kinfold.core.novelty import real_similarity
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError
from kinfold.novel_run import GeneratedClasses, generated_classes
from kinfold.reports.training_curves import Curve, draw_curves

NUMBERS = {
    "novel_own_similarity": "own proxy, mean",
    "novel_own_similarity_min": "own proxy, least",
    "novel_real_similarity": "real proxies, mean",
    "novel_real_similarity_max": "nearest real proxy",
    "generated_variance": "width",
}
"""Names in the log (below `health/`) → columns."""

LEGEND = (
    "Similarities (cosine unless the run says otherwise): of generated vectors to the proxy of their own class, mean and least of a class; of the\n"
    "proxies of generated classes to real ones, over all and to the nearest. Width: variance within a generated class, as a multiple of a real one's."
)
COLLAPSED = 0.1
N_NEAREST = 5


def show_novel_command(runs: Sequence[str], *, picture: Path | None, as_json: bool) -> None:
    """Print the last numbers of each run, the real classes nearest to generated ones, and a verdict; draw their course if asked to."""
    if len(set(runs)) < len(runs):
        raise ConfigError("a run is named twice: name each once.")
    rows = {name: _rows(name) for name in runs}
    last = {name: {number: _last(found, number) for number in NUMBERS} for name, found in rows.items()}
    nearest = {name: {} if last[name]["generated_variance"] is None else _nearest(name) for name in runs}
    verdicts = {name: text for name in runs if (text := _verdict(last[name]["generated_variance"]))}
    if picture is not None:
        _draw(rows, picture)
    if as_json:
        found = [{"run": name, **last[name], "nearest_real": nearest[name], "verdict": verdicts.get(name)} for name in runs]
        print_json({"runs": found})
        return
    body = [[name, *("–" if value is None else f"{value:.3f}" for value in last[name].values())] for name in runs]
    print_table(["run", *NUMBERS.values()], body)
    print(LEGEND)
    for name, counts in nearest.items():
        if counts:
            some = ", ".join(f"{real} ({n})" for real, n in list(counts.items())[:N_NEAREST])
            print(f"{name}: {len(counts)} real classes are the nearest of a generated one, most often {some}")
    for name, text in verdicts.items():
        print(f"{name}: {text}")
    if picture is not None:
        print(f"wrote {picture}")


def _rows(name: str) -> list[dict[str, Any]]:
    run = Run(name)
    if not run.exists:
        raise DataError(f"{name} is no run: name folders that `kinfold train` wrote, such as runs/l2a_nc.")
    found = [row for row in run.rows() if any(f"health/{number}" in row for number in NUMBERS)]
    if not found:
        raise DataError(
            f"{name} has logged nothing about generated classes: its objective is neither l2a_nc nor proxy_synthesis over proxies, or it has not "
            "come to its first row yet."
        )
    return found


def _last(rows: Sequence[dict[str, Any]], number: str) -> float | None:
    values = [row[f"health/{number}"] for row in rows if f"health/{number}" in row]
    return values[-1] if values else None


def _nearest(name: str) -> dict[str, int]:
    """Return how many generated classes have each real class as their nearest, the most frequent first; empty without proxies."""
    try:
        found: GeneratedClasses = generated_classes(name)
    except DataError as error:  # grids keep no checkpoint: the log's numbers are there all the same
        say(f"without the nearest real classes: {error}")
        return {}
    if found.novel_proxies is None or found.real_proxies is None or not found.classes:
        return {}
    near = real_similarity(found.novel_proxies, found.real_proxies, similarity=found.similarity).nearest.tolist()
    return {str(found.classes[place]): n for place, n in Counter(near).most_common()}


def _verdict(width: float | None) -> str | None:
    if width is None or width >= COLLAPSED:
        return None
    return (
        f"the generated classes have collapsed to points: their width is {width:.3f} of a real class's. Take objective.divergence = 'mmd' or "
        "'sliced_wasserstein', raise objective.divergence_weight, or pretrain longer."
    )


def _draw(rows: dict[str, list[dict[str, Any]]], picture: Path) -> None:
    panels = {}
    for number, title in NUMBERS.items():
        curves = []
        for title_of_run, (name, found) in zip(short_names(list(rows)), rows.items(), strict=True):
            points = [(row["step"], row[f"health/{number}"]) for row in found if f"health/{number}" in row]
            if points:
                curves.append(Curve(title_of_run, points, mark=_joint_from(name, found)))
        if curves:
            panels[title] = curves
    caption = f"Numbers over updates. {' '.join(LEGEND.split())} Dotted: the joint stage begins."
    draw_curves(panels, picture, caption=caption)


def _joint_from(name: str, rows: Sequence[dict[str, Any]]) -> int | None:
    """Return the update after which the joint stage began; `None` where there is none."""
    settings = Run(name).config().get("objective_object", {}).get("settings", {})
    epochs = settings.get("pretraining_epochs")
    before = [row["step"] for row in rows if epochs and row["epoch"] < epochs]
    return before[-1] if before and before[-1] < rows[-1]["step"] else None
