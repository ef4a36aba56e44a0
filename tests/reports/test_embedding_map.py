"""Maps: a point for each row in the colour of its category, one legend, outlines and their rule only where they are asked for."""

import re

import numpy as np
import pytest

from kinfold.errors import ConfigError, ShapeError
from kinfold.reports.embedding_map import Panel, draw_maps
from kinfold.reports.palette import LOOKS, OTHER_LOOK

RANDOM = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def letters(monkeypatch):
    """Write letters as text in SVG files."""
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")


def marks(file, color: str) -> int:
    """Return how many points of a colour a file draws, with the legend's."""
    return len(re.findall(rf'<use [^>]*style="fill: {color}', file.read_text(encoding="utf-8")))


def outlines(file) -> int:
    """Return how many outlines a file draws: nothing else is nearly transparent."""
    return file.read_text(encoding="utf-8").count("fill-opacity: 0.05")


def test_every_panel_has_its_points_title_and_number(tmp_path):
    category = ["cat"] * 9 + ["dog"] * 6
    panels = [Panel("base $1", RANDOM.normal(size=(15, 2)), "40 %"), Panel("hpl", RANDOM.normal(size=(15, 2)), "70 %")]
    file = tmp_path / "new" / "map.svg"
    draw_maps(panels, category, file, category_name="kind", caption="t-SNE of 15 embeddings.")
    text = file.read_text(encoding="utf-8")
    for part in ("base $1", "hpl", "40 %", "70 %", "kind", "cat", "dog", "t-SNE of 15 embeddings.", "convex hull of the 80 %"):
        assert part in re.sub(r"\s+", " ", text), part
    assert (marks(file, LOOKS[0].color), marks(file, LOOKS[1].color)) == (2 * 9 + 1, 2 * 6 + 1)
    assert outlines(file) == 4  # one each


def test_maps_by_class_claim_no_outline(tmp_path):
    file = tmp_path / "map.svg"
    draw_maps([Panel("base", RANDOM.normal(size=(15, 2)))], ["cat"] * 15, file, hulls=False)
    assert "convex hull" not in file.read_text(encoding="utf-8")
    assert outlines(file) == 0


def test_beyond_twelve_categories_the_rest_is_grey_and_counted(tmp_path):
    category = [f"k{i}" for i in range(14) for _ in range(16 - i)]
    file = tmp_path / "map.svg"
    draw_maps([Panel("base", RANDOM.normal(size=(len(category), 2)))], category, file)
    assert "other (3)" in file.read_text(encoding="utf-8")
    assert marks(file, OTHER_LOOK.color) == 5 + 4 + 3 + 1
    assert marks(file, LOOKS[11].color) == 0
    assert outlines(file) == 11  # none around the grey ones


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="at least one panel"):
        draw_maps([], [], tmp_path / "x.png")
    with pytest.raises(ShapeError, match=r"`base` has positions of shape \(3, 2\) for 4 categories"):
        draw_maps([Panel("base", np.zeros((3, 2)))], ["a"] * 4, tmp_path / "x.png")
