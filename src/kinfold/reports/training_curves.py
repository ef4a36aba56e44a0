"""Numbers over training: one small panel a number, one line a run."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kinfold.atomic import atomic_path
from kinfold.errors import ConfigError
from kinfold.reports.palette import LOOKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 3.1, 2.3  # inches of a panel
TEXT, FAINT, GRID = "#222222", "#555555", "#e4e4e4"
N_COLUMNS = 3
DASHES = ("-", "--", "-.", (0, (1, 1)))
INCHES_PER_LETTER, LINE_HEIGHT = 0.062, 0.13  # of a name at the end of its line


@dataclass(frozen=True)
class Curve:
    """One line.

    Attributes:
        name: of the run.
        points: (update, value).
        mark: an update where something changed; `None`: nothing did.
    """

    name: str
    points: Sequence[tuple[float, float]]
    mark: float | None = None


def draw_curves(panels: Mapping[str, Sequence[Curve]], file: str | Path, *, caption: str = "", x_name: str = "update") -> None:
    """Draw small panels side by side, a run having one colour and one style of line in all of them and its name at each line's end.

    Marks are dotted vertical lines: grey where all runs of a panel share it, else in the run's colour.

    Args:
        panels: title → curves, each with a point at least.
        file: `.png`, `.svg` or `.pdf`; written whole or not at all.
        caption: below the panels.
        x_name: of the horizontal axis.

    Raises:
        ConfigError: nothing to draw.
    """
    from matplotlib.figure import Figure

    if not panels:
        raise ConfigError("there is no curve to draw.")
    names = list(dict.fromkeys(curve.name for curves in panels.values() for curve in curves))
    n_columns = min(N_COLUMNS, len(panels))
    n_rows = -(-len(panels) // n_columns)
    width = n_columns * (WIDTH + INCHES_PER_LETTER * max(map(len, names)))
    lines = textwrap.wrap(caption, int(width * 17))
    below = 0.15 * len(lines) + 0.1
    size = (width, HEIGHT * n_rows + below)
    figure = Figure(figsize=size, dpi=150)
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for each, (title, curves) in zip(axes.flat, panels.items(), strict=False):
        _draw_panel(each, title, curves, names, x_name)
    for each in axes.flat[len(panels) :]:
        each.set_axis_off()
    figure.text(0.1 / size[0], 0.06 / size[1], "\n".join(lines), fontsize=7, color=FAINT, va="bottom", parse_math=False)
    figure.tight_layout(rect=(0, below / size[1], 1, 1))
    with atomic_path(file) as temporary:
        figure.savefig(temporary)


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Return heights in [0, 1] moved until they are `gap` apart, in their order; closer where there is no room for that.

    Example:
        >>> apart([0.5, 0.5, 0.9], 0.25)
        [0.25, 0.5, 0.9]
    """
    gap = min(gap, 1.0 / max(1, len(heights) - 1))
    order = sorted(range(len(heights)), key=heights.__getitem__)
    found = [0.0] * len(heights)
    ceiling = 1.0
    for place in reversed(order):
        found[place] = min(heights[place], ceiling)
        ceiling = found[place] - gap
    floor = 0.0
    for place in order:
        found[place] = max(found[place], floor)
        floor = found[place] + gap
    return found


def _draw_panel(axes: "Axes", title: str, curves: Sequence[Curve], names: Sequence[str], x_name: str) -> None:
    marks = {curve.mark for curve in curves}
    colors = [LOOKS[names.index(curve.name) % len(LOOKS)].color for curve in curves]
    for curve, color in zip(curves, colors, strict=True):
        style = DASHES[names.index(curve.name) % len(DASHES)]
        axes.plot(*zip(*curve.points, strict=True), color=color, linestyle=style, linewidth=1.6)
        if curve.mark is not None:
            shared = len(marks - {None}) == 1
            axes.axvline(curve.mark, color=FAINT if shared else color, linestyle=":", linewidth=1, zorder=1)
    low, high = axes.get_ylim()
    ends = [(curve.points[-1][1] - low) / (high - low) for curve in curves]
    for curve, color, height in zip(curves, colors, apart(ends, LINE_HEIGHT / (HEIGHT - 0.8)), strict=True):
        place = {"transform": axes.transAxes, "va": "center"}
        axes.text(1.02, height, curve.name, fontsize=7, color=color, parse_math=False, **place)
    axes.set_ylim(low, high)
    axes.set_title(title, fontsize=9, color=TEXT, loc="left", parse_math=False)
    axes.set_xlabel(x_name, fontsize=7.5, color=FAINT)
    axes.tick_params(labelsize=7, colors=FAINT)
    axes.grid(color=GRID, linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
