"""Curves over training and over ratios: pictures that are there, and refusals."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from kinfold.errors import ConfigError
from kinfold.reports.ratio_curve import RatioPoint, draw_ratios
from kinfold.reports.training_curves import Curve, apart, draw_curves


def test_panels_with_several_runs_are_drawn(tmp_path):
    curves = [Curve(name, [(step, step * slope) for step in range(5)], mark=2.0) for name, slope in (("a$b_c", 1.0), ("b", -1.0))]
    draw_curves({"one": curves, "two": curves[:1], "three": curves, "four": curves}, tmp_path / "x.png", caption="c " * 200)
    with Image.open(tmp_path / "x.png") as image:
        assert image.size[0] > image.size[1] > 300
    with pytest.raises(ConfigError, match="no curve to draw"):
        draw_curves({}, tmp_path / "y.png")


def test_each_line_has_its_name_at_its_end_in_every_panel_and_one_mark_where_all_agree(tmp_path):
    def drawn(*marks):
        curves = [Curve(f"run{i}", [(0, i), (9, i)], mark=mark) for i, mark in enumerate(marks)]
        draw_curves({"one": curves, "two": curves[:1]}, tmp_path / "x.svg")
        return (tmp_path / "x.svg").read_text(encoding="utf-8")

    text = drawn(4.0, 4.0)
    assert (text.count("run0"), text.count("run1")) == (2, 1)
    dotted = "stroke-dasharray: 1,1.65"
    assert text.count(f"{dotted}; stroke-dashoffset: 0; stroke: #555555") == 3
    other = drawn(4.0, 5.0)  # alone in the second panel, the first run's mark is that of all
    assert other.count(f"{dotted}; stroke-dashoffset: 0; stroke: #555555") == 1
    assert drawn(None, None).count(dotted) == 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.3))
def test_names_are_moved_apart_in_their_order_within_the_panel(heights, gap):
    found = apart(heights, gap)
    order = sorted(range(len(heights)), key=heights.__getitem__)
    gap = min(gap, 1 / max(1, len(heights) - 1))
    assert all(found[b] - found[a] >= gap - 1e-9 for a, b in itertools.pairwise(order))
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in found)
    if all(heights[b] - heights[a] >= gap for a, b in itertools.pairwise(order)):
        assert found == pytest.approx(heights)


def test_a_curve_over_ratios_needs_its_base(tmp_path):
    points = [RatioPoint(2.0, 0.42, (0.41, 0.43)), RatioPoint(0.0, 0.40), RatioPoint(0.5, 0.41, (0.405, 0.42))]
    draw_ratios(points, tmp_path / "x.svg", metric="map_at_r", caption="seeds")
    text = (tmp_path / "x.svg").read_text(encoding="utf-8")
    assert "<svg" in text
    for wrong in ([], points[:1]):
        with pytest.raises(ConfigError, match="needs a point of ratio 0"):
            draw_ratios(wrong, tmp_path / "y.png", metric="map_at_r")
