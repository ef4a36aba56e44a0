"""Queries with their neighbours: right ones green, relatives amber, wrong ones red, told apart without colour too."""

import matplotlib
import numpy as np
import pytest
from PIL import Image

from kinfold.errors import DataError, ShapeError
from kinfold.reports.figures import NEAR, RIGHT, WRONG, Shown, draw_neighbours


def picture(value: int) -> Image.Image:
    return Image.new("RGB", (20, 20), (value, value, value))


def share_of(file, color: str) -> float:
    pixels = np.asarray(Image.open(file).convert("RGB"), dtype=int)
    wanted = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
    return float((np.abs(pixels - wanted).sum(axis=2) < 30).mean())


@pytest.mark.parametrize(("is_right", "present", "absent"), [(True, RIGHT, WRONG), (False, WRONG, RIGHT)])
def test_frames_say_right_or_wrong(tmp_path, is_right, present, absent):
    file = tmp_path / "deep" / "n.png"
    draw_neighbours([[Shown(picture(200)), Shown(picture(100), "0.9", is_right)]], file)
    assert share_of(file, present) > 0.001
    assert share_of(file, absent) == 0


def test_a_relative_is_neither_right_nor_wrong(tmp_path):
    file = tmp_path / "n.png"
    draw_neighbours([[Shown(picture(200)), Shown(picture(100), "", False, is_near=True)]], file)
    assert share_of(file, NEAR) > 0.001
    assert share_of(file, RIGHT) == share_of(file, WRONG) == 0
    draw_neighbours([[Shown(picture(200)), Shown(picture(100), "", True, is_near=True)]], file)
    assert share_of(file, NEAR) == 0 < share_of(file, RIGHT)


def test_rows_are_named_and_frames_explained(tmp_path, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    file = tmp_path / "n.svg"
    rows = [[Shown(picture(0)), Shown(picture(9), "$1 or $2", is_right=True)]] * 4
    names, legend = ["base", "hpl"] * 2, ("same class", "", "other family")
    draw_neighbours(rows, file, row_names=names, legend=legend, caption="Queries: every second.")
    text = file.read_text(encoding="utf-8")
    for part, n in (
        ("base", 2),
        ("hpl", 2),
        ("same class", 1),
        ("other family", 1),
        ("Queries: every second.", 1),
        ("$1 or $2", 4),
    ):
        assert text.count(f">{part}<") == n, part


def test_a_picture_without_rows_or_with_too_few_names_is_refused(tmp_path):
    with pytest.raises(DataError, match="no query to draw"):
        draw_neighbours([], tmp_path / "n.png")
    with pytest.raises(ShapeError, match="2 row names for 1 rows"):
        draw_neighbours([[Shown(picture(0))]], tmp_path / "n.png", row_names=["a", "b"])


def test_rows_of_unequal_length_are_drawn(tmp_path):
    rows = [[Shown(picture(0)), Shown(picture(10), is_right=True), Shown(picture(20), is_right=False)], [Shown(picture(30))]]
    draw_neighbours(rows, tmp_path / "n.svg", title="two queries")
    assert "two queries" in (tmp_path / "n.svg").read_text() or (tmp_path / "n.svg").stat().st_size > 1000
