"""Maps of embeddings: one panel a model, points coloured by their category, an outline around each."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kinfold.atomic import atomic_path
from kinfold.core.hierarchy import Name
from kinfold.errors import ConfigError, ShapeError
from kinfold.reports.hull import SHARE, middle_hull
from kinfold.reports.palette import OTHER_LOOK, Look, legend_entries, looks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE = 4.2  # inches of a panel
TEXT, FAINT, RIM = "#222222", "#555555", "#cccccc"
INCHES_PER_LETTER = 0.07
HULL_RULE = f"Outlines: convex hull of the {SHARE:.0%} of a category's points nearest to their median.".replace("%", " %")


@dataclass(frozen=True, eq=False)
class Panel:
    """One map.

    Attributes:
        title: the model's name.
        position: (n, 2), where each row lies; see `project`.
        detail: the number that belongs to the map, below the title.
    """

    title: str
    position: np.ndarray
    detail: str = ""


def draw_maps(
    panels: Sequence[Panel],
    category: Sequence[Name],
    file: str | Path,
    *,
    category_name: str = "",
    hulls: bool = True,
    caption: str = "",
) -> None:
    """Draw maps of the same rows side by side, with one legend.

    Categories differ by colour and mark. With more than 12, the 11 largest have their own and the rest is grey, without outline.

    Args:
        panels: one a model, all of the same rows in the same order.
        category: of each row, such as its super-category.
        file: `.png`, `.svg` or `.pdf`; written whole or not at all.
        category_name: above the legend.
        hulls: outline each category: the convex hull of the 80 % of its points nearest to their median; the caption says so.
        caption: below the maps.

    Raises:
        ConfigError: no panel.
        ShapeError: panels that do not have one position for each category.
    """
    from matplotlib.figure import Figure

    if not panels:
        raise ConfigError("there is no map to draw: give at least one panel.")
    for panel in panels:
        if panel.position.shape != (len(category), 2):
            raise ShapeError(f"`{panel.title}` has positions of shape {panel.position.shape} for {len(category)} categories.")
    looks = looks_of(category)
    entries = legend_entries(looks)
    width = SIDE * len(panels)
    widest = max(INCHES_PER_LETTER * len(text) for text, _ in entries) + 0.4
    n_columns = min(len(entries), max(1, int((width - 0.3) / widest)))
    lines = textwrap.wrap(f"{caption} {HULL_RULE if hulls else ''}".strip(), int(width / INCHES_PER_LETTER * 1.15))
    legend_height = 0.16 * (math.ceil(len(entries) / n_columns) + bool(category_name)) + 0.2
    below = legend_height + 0.15 * len(lines) + 0.1
    height = SIDE + 0.6 + below
    figure = Figure(figsize=(width, height), dpi=150)
    for place, panel in enumerate(panels):
        axes = figure.add_axes(((place + 0.02) / len(panels), below / height, 0.96 / len(panels), (SIDE - 0.1) / height))
        _draw_panel(axes, panel, category, looks, hulls=hulls)
    _draw_legend(figure, entries, category_name, n_columns, top=(below - 0.02) / height)
    figure.text(0.1 / width, 0.08 / height, "\n".join(lines), fontsize=7, color=FAINT, va="bottom", parse_math=False)
    with atomic_path(file) as temporary:
        figure.savefig(temporary)


def _draw_panel(axes: "Axes", panel: Panel, category: Sequence[Name], looks: dict[Name, Look], *, hulls: bool) -> None:
    from matplotlib.patches import Polygon

    size = float(np.clip(20_000 / max(len(category), 1), 5, 26))  # square points: many rows, small marks
    look_of_row = [looks[name] for name in category]
    for look in sorted(set(look_of_row), key=lambda look: -look_of_row.count(look) - len(category) * (look == OTHER_LOOK)):
        points = panel.position[[found == look for found in look_of_row]]  # grey first, then frequent ones, rare ones on top
        is_other = look == OTHER_LOOK
        axes.scatter(*points.T, s=size, c=look.color, marker=look.marker, linewidths=0, alpha=0.6 if is_other else 0.8, zorder=3)
        corners = middle_hull(points) if hulls and not is_other else np.empty((0, 2))
        if len(corners) > 2:
            axes.add_patch(Polygon(corners, facecolor=f"{look.color}0f", edgecolor=look.color, linewidth=1.1, zorder=2))
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal", adjustable="datalim")
    for spine in axes.spines.values():
        spine.set_color(RIM)
    detail = textwrap.wrap(panel.detail, int(SIDE / INCHES_PER_LETTER))
    axes.set_title(panel.title, fontsize=10, color=TEXT, loc="left", pad=6 + 11 * len(detail), parse_math=False)
    axes.text(0, 1.015, "\n".join(detail), transform=axes.transAxes, fontsize=7.5, color=FAINT, va="bottom", parse_math=False)


def _draw_legend(figure, entries: Sequence[tuple[str, Look]], title: str, n_columns: int, *, top: float) -> None:
    from matplotlib.lines import Line2D

    legend = figure.legend(
        [Line2D([], [], linestyle="none", marker=look.marker, color=look.color, mew=0, markersize=6) for _, look in entries],
        [text for text, _ in entries],
        ncols=n_columns,
        loc="upper left",
        bbox_to_anchor=(0, top),
        frameon=False,
        fontsize=7.5,
        title=title or None,
        title_fontsize=7.5,
        alignment="left",
        handletextpad=0.1,
        labelspacing=0.35,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
