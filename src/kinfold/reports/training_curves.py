"""Numbers over training: one small panel a number, one line a run."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kinfold.atomic import atomic_path
from kinfold.errors import ConfigError
from kinfold.reports.palette import LOOKS

WIDTH, HEIGHT = 3.1, 2.3  # inches of a panel
TEXT, FAINT, GRID = "#222222", "#555555", "#e4e4e4"
N_COLUMNS = 3
DASHES = ("-", "--", "-.", ":")


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
    """Draw small panels side by side, a run having one colour and one style of line in all of them.

    Args:
        panels: title → curves.
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
    lines = textwrap.wrap(caption, int(WIDTH * n_columns * 17))
    below, above = 0.15 * len(lines) + 0.2, 0.35
    size = (WIDTH * n_columns, HEIGHT * n_rows + below + above)
    figure = Figure(figsize=size, dpi=150)
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for place, each in enumerate(axes.flat):
        if place >= len(panels):
            each.set_axis_off()
            continue
        title, curves = list(panels.items())[place]
        for curve in curves:
            number = names.index(curve.name)
            color, style = LOOKS[number % len(LOOKS)].color, DASHES[number % len(DASHES)]
            each.plot(*zip(*curve.points, strict=True), color=color, linestyle=style, linewidth=1.6, label=curve.name)
            if curve.mark is not None:
                each.axvline(curve.mark, color=color, linestyle=":", linewidth=1, zorder=1)
        each.set_title(title, fontsize=9, color=TEXT, loc="left", parse_math=False)
        each.set_xlabel(x_name, fontsize=7.5, color=FAINT)
        each.tick_params(labelsize=7, colors=FAINT)
        each.grid(color=GRID, linewidth=0.6)
        for side in ("top", "right"):
            each.spines[side].set_visible(False)
    entries = {text: line for each in axes.flat for line, text in zip(*each.get_legend_handles_labels(), strict=True)}
    legend = figure.legend(entries.values(), entries.keys(), loc="upper left", ncols=max(1, n_columns), frameon=False, fontsize=8)
    for text in legend.get_texts():
        text.set_parse_math(False)
    figure.text(0.1 / size[0], 0.06 / size[1], "\n".join(lines), fontsize=7, color=FAINT, va="bottom", parse_math=False)
    figure.tight_layout(rect=(0, below / size[1], 1, 1 - above / size[1]))
    with atomic_path(file) as temporary:
        figure.savefig(temporary)
