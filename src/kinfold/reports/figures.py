"""Pictures for files: queries with their nearest neighbours, right and wrong ones framed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kinfold.atomic import atomic_path
from kinfold.images.decode import ImageSource, open_image

RIGHT, WRONG, QUERY = "#1a8f3c", "#c8231c", "#444444"


@dataclass(frozen=True)
class Shown:
    """One picture of the figure.

    Attributes:
        image: path, Pillow image or array.
        caption: a word or two below it.
        is_right: of the query's class; `None` for the query itself.
    """

    image: ImageSource
    caption: str = ""
    is_right: bool | None = None


def draw_neighbours(rows: Sequence[Sequence[Shown]], file: str | Path, *, title: str = "", size: int = 96) -> None:
    """Draw one row per query: the query, then its neighbours from the nearest on, framed green (right) or red (wrong).

    Frames also differ in style (solid and dashed), for readers who do not tell red from green.

    Args:
        rows: the query first, then its neighbours.
        file: `.png`, `.svg` or `.pdf`; written whole or not at all.
        title: above the picture.
        size: side of one picture in pixels at 100 dots an inch.
    """
    from matplotlib.figure import Figure

    n_columns = max(len(row) for row in rows)
    cell = size / 100
    figure = Figure(figsize=(cell * n_columns * 1.12, cell * len(rows) * 1.32 + 0.45), dpi=150, layout="constrained")
    axes = figure.subplots(len(rows), n_columns, squeeze=False)
    for row, places in zip(rows, axes, strict=True):
        for place in places:
            place.set_axis_off()
        for shown, place in zip(row, places, strict=False):
            _draw(shown, place)
    axes[0, 0].set_title("query", fontsize=8, color=QUERY)
    if title:
        figure.suptitle(title, fontsize=9)
    with atomic_path(file) as temporary:
        figure.savefig(temporary)


def _draw(shown: Shown, place) -> None:
    from matplotlib.patches import Rectangle

    image = open_image(shown.image)
    place.imshow(image, interpolation="nearest" if min(image.size) < 64 else "antialiased")
    color = QUERY if shown.is_right is None else RIGHT if shown.is_right else WRONG
    style = "--" if shown.is_right is False else "-"
    frame = Rectangle(
        (0, 0), 1, 1, transform=place.transAxes, fill=False, edgecolor=color, linewidth=2.5, linestyle=style, clip_on=False
    )
    place.add_patch(frame)
    place.text(0.5, -0.05, shown.caption, transform=place.transAxes, fontsize=6, color=color, ha="center", va="top")
