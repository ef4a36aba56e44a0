"""A picture of groups of classes: a row of images for each, with its name."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kinfold.atomic import atomic_path
from kinfold.core.hierarchy import Name
from kinfold.errors import DataError
from kinfold.images.decode import ImageSource, open_image

INK, FAINT = "#222222", "#666666"
CAPTION = 16  # characters below an image
WIDTH, MARGIN, HEAD = 5.0, 0.15, 0.35  # inches: the least width, the left edge, room for the title
NAME, GAP, BETWEEN = 0.2, 0.12, 0.5  # inches: a group's name, between images, between the images of one group and the next


def draw_exemplars(
    groups: Mapping[Name, Sequence[tuple[ImageSource, str]]], file: str | Path, *, title: str = "", size: int = 96
) -> None:
    """Draw one row for each group: its name above, its images side by side, with a caption below each.

    Args:
        groups: group → images with their captions, such as the names of their classes.
        file: `.png`, `.svg` or `.pdf`; written whole or not at all.
        title: above the picture.
        size: side of one image in pixels at 100 dots an inch.

    Raises:
        DataError: there is nothing to draw, or an image cannot be read.
    """
    if not any(groups.values()):
        raise DataError("there is no image to draw: no group has one.")
    from matplotlib.figure import Figure

    cell, n_columns = size / 100, max(len(images) for images in groups.values())
    width = max(WIDTH, 2 * MARGIN + n_columns * (cell + GAP))
    height = HEAD + len(groups) * (cell + BETWEEN)
    figure = Figure(figsize=(width, height), dpi=150)
    if title:
        figure.text(MARGIN / width, 1 - 0.1 / height, title, fontsize=9, color=INK, va="top")
    for number, (name, images) in enumerate(groups.items()):
        bottom = height - HEAD - number * (cell + BETWEEN) - NAME - cell
        figure.text(MARGIN / width, (bottom + cell + 0.05) / height, str(name), fontsize=7, color=INK, weight="bold")
        for column, (source, caption) in enumerate(images):
            left = MARGIN + column * (cell + GAP)
            place = figure.add_axes((left / width, bottom / height, cell / width, cell / height))
            place.set_axis_off()
            image = open_image(source)
            place.imshow(image, interpolation="nearest" if min(image.size) < 64 else "antialiased")
            place.text(0.5, -0.05, _short(caption), transform=place.transAxes, fontsize=5.5, color=FAINT, ha="center", va="top")
    with atomic_path(file) as temporary:
        figure.savefig(temporary)


def _short(text: str) -> str:
    return text if len(text) <= CAPTION else f"{text[: CAPTION - 1]}…"
