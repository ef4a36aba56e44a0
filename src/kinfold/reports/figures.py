"""Pictures for files: queries with their nearest neighbours, framed by what they are."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinfold.atomic import atomic_path
from kinfold.errors import DataError, ShapeError
from kinfold.images.decode import ImageSource, open_image

RIGHT, NEAR, WRONG, QUERY = "#1a8f3c", "#e08a00", "#c8231c", "#444444"
STYLES: dict[str, Any] = {RIGHT: "-", NEAR: "-.", WRONG: "--", QUERY: "-"}
TEXT = {NEAR: "#8f5800"}  # amber is too light for letters
GAP = 0.08  # of a row, between the rows of one query and those of the next
INCHES_PER_LETTER = 0.06


@dataclass(frozen=True)
class Shown:
    """One picture of the figure.

    Attributes:
        image: path, Pillow image or array.
        caption: a word or two below it.
        is_right: of the query's class; `None` for the query itself.
        is_near: of another class, but of the query's super-category.
    """

    image: ImageSource
    caption: str = ""
    is_right: bool | None = None
    is_near: bool = False

    @property
    def color(self) -> str:
        """Colour of its frame, which goes with a style of line."""
        if self.is_right is None:
            return QUERY
        return RIGHT if self.is_right else NEAR if self.is_near else WRONG


def draw_neighbours(  # noqa: PLR0913 (each is a choice of its own)
    rows: Sequence[Sequence[Shown]],
    file: str | Path,
    *,
    title: str = "",
    size: int = 96,
    row_names: Sequence[str] = (),
    legend: Sequence[str] = (),
    caption: str = "",
) -> None:
    """Draw one row per query: the query, then its neighbours from the nearest on, framed by what they are.

    Green and solid: of the query's class; amber, dashes and dots: of its super-category only; red and dashed: of neither. The styles
    are for readers who do not tell the colours apart.

    Args:
        rows: the query first, then its neighbours.
        file: `.png`, `.svg` or `.pdf`; written whole or not at all.
        title: above the picture.
        size: side of one picture in pixels at 100 dots an inch.
        row_names: what stands before each row, such as the model's name. Rows that follow each other belong to one query as long as
            no name comes twice; a gap sets the next query apart.
        legend: what green, amber and red mean, in this order, an empty text for what does not occur; none: no legend.
        caption: below the picture.

    Raises:
        DataError: no row, or an image that cannot be read.
        ShapeError: not one name for each row.
    """
    from matplotlib.figure import Figure

    if not rows:
        raise DataError("there is no query to draw: give at least one row.")
    if row_names and len(row_names) != len(rows):
        raise ShapeError(f"{len(row_names)} row names for {len(rows)} rows: give one for each.")
    n_columns = max(len(row) for row in rows)
    heights = _heights(row_names or [""] * len(rows))
    cell = size / 100
    extra = 0.45 + 0.3 * bool(legend) + 0.3 * bool(caption)
    figure = Figure(figsize=(cell * n_columns * 1.12, cell * sum(heights) * 1.32 + extra), dpi=150, layout="constrained")
    axes = figure.subplots(len(heights), n_columns, squeeze=False, gridspec_kw={"height_ratios": heights})
    for place in axes.flat:
        place.set_axis_off()
    lines = [line for line, height in zip(axes, heights, strict=True) if height == 1]
    for number, (row, places) in enumerate(zip(rows, lines, strict=True)):
        for shown, place in zip(row, places, strict=False):
            _draw(shown, place)
        if row_names:
            _write(places[0], -0.12, 0.5, row_names[number], color=QUERY, ha="right", va="center", rotation=90)
    axes[0, 0].set_title("query", fontsize=8, color=QUERY)
    if title:
        figure.suptitle(title, fontsize=9)
    _explain(figure, legend, caption)
    with atomic_path(file) as temporary:
        figure.savefig(temporary)


def _heights(row_names: Sequence[str]) -> list[float]:
    """Return the height of each row, 1, with a gap before each that begins another query."""
    heights, seen = list[float](), set[str]()
    for name in row_names:
        if name and name in seen:
            heights.append(GAP)
            seen.clear()
        seen.add(name)
        heights.append(1)
    return heights


def _draw(shown: Shown, place: Any) -> None:
    from matplotlib.patches import Rectangle

    image, color = open_image(shown.image), shown.color
    place.imshow(image, interpolation="nearest" if min(image.size) < 64 else "antialiased")
    frame = Rectangle(
        (0, 0),
        1,
        1,
        transform=place.transAxes,
        fill=False,
        clip_on=False,
        edgecolor=color,
        linewidth=2.5,
        linestyle=STYLES[color],
    )
    place.add_patch(frame)
    _write(place, 0.5, -0.05, shown.caption, color=TEXT.get(color, color), ha="center", va="top")


def _write(place: Any, x: float, y: float, text: str, **how: Any) -> None:
    place.text(x, y, text, transform=place.transAxes, fontsize=6, parse_math=False, **how)


def _explain(figure: Any, legend: Sequence[str], caption: str) -> None:
    from matplotlib.lines import Line2D

    width = figure.get_size_inches()[0]
    text = textwrap.fill(caption, int(width / INCHES_PER_LETTER))
    if legend:
        known = [(color, meaning) for color, meaning in zip((RIGHT, NEAR, WRONG), legend, strict=True) if meaning]
        handles = [Line2D([], [], color=color, linewidth=2.5, linestyle=STYLES[color]) for color, _ in known]
        how: dict[str, Any] = {"loc": "outside lower left", "ncols": 3, "frameon": False, "handlelength": 3.2, "fontsize": 7}
        meanings = [meaning for _, meaning in known]
        figure.legend(handles, meanings, title=text or None, title_fontsize=6.5, alignment="left", **how)
    elif text:
        figure.supxlabel(text, fontsize=6.5, color=QUERY, x=0.01, ha="left")
