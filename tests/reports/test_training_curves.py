"""Curves over training and over ratios: pictures that are there, and refusals."""

import pytest
from PIL import Image

from kinfold.errors import ConfigError
from kinfold.reports.ratio_curve import RatioPoint, draw_ratios
from kinfold.reports.training_curves import Curve, draw_curves


def test_panels_with_several_runs_are_drawn(tmp_path):
    curves = [Curve(name, [(step, step * slope) for step in range(5)], mark=2.0) for name, slope in (("a$b_c", 1.0), ("b", -1.0))]
    draw_curves({"one": curves, "two": curves[:1], "three": curves, "four": curves}, tmp_path / "x.png", caption="c " * 200)
    with Image.open(tmp_path / "x.png") as image:
        assert image.size[0] > image.size[1] > 300
    with pytest.raises(ConfigError, match="no curve to draw"):
        draw_curves({}, tmp_path / "y.png")


def test_a_curve_over_ratios_needs_its_base(tmp_path):
    points = [RatioPoint(2.0, 0.42, (0.41, 0.43)), RatioPoint(0.0, 0.40), RatioPoint(0.5, 0.41, (0.405, 0.42))]
    draw_ratios(points, tmp_path / "x.svg", metric="map_at_r", caption="seeds")
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "<svg" in text
    for wrong in ([], points[:1]):
        with pytest.raises(ConfigError, match="needs a point of ratio 0"):
            draw_ratios(wrong, tmp_path / "y.png", metric="map_at_r")
