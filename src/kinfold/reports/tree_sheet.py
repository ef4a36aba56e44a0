"""The sheet that trees are drawn on: inches across, one row a leaf, a legend below."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kinfold.atomic import atomic_path
from kinfold.core.hierarchy import Name
from kinfold.reports.palette import Look, legend_entries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW, MARGIN, LINE = 0.16, 0.15, 0.18  # inches: of a leaf, around the picture, of a line of the legend
FONT = 7.0
INK, BRANCH, FAINT = "#222222", "#888888", "#666666"
MARK = 0.14  # inches that a leaf's mark takes
SMALL: dict[str, Any] = {"fontsize": FONT, "parse_math": False}  # a name may hold a $


class Legend(NamedTuple):
    """What marks of leaves mean.

    Attributes:
        looks: category → look; empty: no marks, no legend.
        title: above it.
    """

    looks: Mapping[Name, Look] = {}
    title: str = ""


NO_LEGEND = Legend()


class Sheet:
    """A figure whose axes count inches to the right and rows downwards (row 0 is the first leaf).

    Args:
        width: of the tree in inches; the sheet is wider where title or legend need it.
        n_rows: number of leaves.
        above: inches above the first row, for headings.
        below: inches below the last row, for a scale.
        legend: of the leaves' marks.
        title: at the top.
    """

    def __init__(
        self, width: float, n_rows: int, *, above: float, below: float = 0.0, legend: Legend = NO_LEGEND, title: str = ""
    ):
        from matplotlib.figure import Figure

        entries = legend_entries(legend.looks)
        widest = max((text_width(text) for text, _ in entries), default=0.0) + 0.35
        width = max(width, text_width(title) * 9 / FONT + 2 * MARGIN, widest + 2 * MARGIN)
        n_columns = max(1, int((width - 2 * MARGIN) / widest))
        legend_height = LINE * (math.ceil(len(entries) / n_columns) + 1.5) if entries else 0.0
        body = above + n_rows * ROW + below
        height = body + legend_height + (0.3 if title else 0.0) + MARGIN
        self.figure: Figure = Figure(figsize=(width, height), dpi=150)
        self.axes: Axes = self.figure.add_axes((0, (legend_height + MARGIN / 2) / height, 1, body / height))
        self.axes.set_xlim(0, width)
        self.axes.set_ylim(n_rows - 0.5 + below / ROW, -0.5 - above / ROW)
        self.axes.set_axis_off()
        if title:
            self.figure.text(MARGIN / width, 1 - 0.1 / height, title, fontsize=9, color=INK, va="top", parse_math=False)
        if entries:
            self._legend(entries, legend.title, n_columns)

    def lines(self, segments: Iterable[Iterable[tuple[float, float]]]) -> None:
        """Draw branches, each a sequence of (inch, row)."""
        from matplotlib.collections import LineCollection

        self.axes.add_collection(LineCollection([list(line) for line in segments], colors=BRANCH, linewidths=0.9), autolim=False)

    def leaf(self, x: float, row: float, text: str, look: Look | None) -> None:
        """Write the name of a leaf, with its mark before it."""
        if look is not None:
            self.axes.plot([x + MARK / 2], [row], marker=look.marker, color=look.color, markersize=5, linestyle="none", mew=0)
        self.axes.text(x + (MARK if look is not None else 0) + 0.04, row, text, color=INK, va="center_baseline", **SMALL)

    def save(self, file: str | Path) -> None:
        """Write the picture, whole or not at all."""
        with atomic_path(file) as temporary:
            self.figure.savefig(temporary)

    def _legend(self, entries: list[tuple[str, Look]], title: str, n_columns: int) -> None:
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], linestyle="none", marker=look.marker, color=look.color, mew=0) for _, look in entries]
        legend = self.figure.legend(
            handles,
            [text for text, _ in entries],
            ncols=n_columns,
            loc="lower left",
            bbox_to_anchor=(0, 0),
            borderaxespad=0.6,
            borderpad=0.9,
            frameon=False,
            fontsize=FONT,
            title=title or None,
            title_fontsize=FONT,
            alignment="left",
            handletextpad=0.2,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)


def text_width(text: str) -> float:
    """Return how many inches a text takes at the size of the names."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    points, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=FONT), ismath=False)
    return float(points) / 72
