"""Queries with their neighbours: right ones green, wrong ones red, told apart without colour too."""

import numpy as np
import pytest
from PIL import Image

from kinfold.reports.figures import RIGHT, WRONG, Shown, draw_neighbours


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


def test_rows_of_unequal_length_are_drawn(tmp_path):
    rows = [[Shown(picture(0)), Shown(picture(10), is_right=True), Shown(picture(20), is_right=False)], [Shown(picture(30))]]
    draw_neighbours(rows, tmp_path / "n.svg", title="two queries")
    assert "two queries" in (tmp_path / "n.svg").read_text() or (tmp_path / "n.svg").stat().st_size > 1000
