"""Outlines: the convex hull, held against scipy's, of the share of points nearest to the median."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from kinfold.reports.hull import convex_hull, middle_hull


@settings(max_examples=40)
@given(st.integers(3, 60), st.integers(0, 10_000))
def test_the_hull_is_that_of_scipy(n, seed):
    points = np.random.default_rng(seed).normal(size=(n, 2))
    found, expected = convex_hull(points), ConvexHull(points)
    assert {tuple(corner) for corner in found} == {tuple(points[corner]) for corner in expected.vertices}
    x, y = found.T
    area = (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() / 2  # positive: anticlockwise
    assert area == pytest.approx(expected.volume)


def test_points_on_a_line_and_equal_points_have_no_area_and_do_no_harm():
    line = np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 1.0]])
    assert convex_hull(line).tolist() == [[0.0, 0.0], [2.0, 2.0]]
    assert len(convex_hull(np.zeros((9, 2)))) == 1


@given(st.integers(5, 40), st.integers(0, 1000))
def test_the_outline_holds_the_stated_share_nearest_to_the_median(n, seed):
    points = np.random.default_rng(seed).normal(size=(n, 2)) ** 3
    corners = middle_hull(points)
    x = np.sort(points[:, 0]), np.sort(points[:, 1])
    median = [(values[(n - 1) // 2] + values[n // 2]) / 2 for values in x]
    order = sorted(range(n), key=lambda i: (points[i, 0] - median[0]) ** 2 + (points[i, 1] - median[1]) ** 2)
    kept = order[: -(-8 * n // 10)]
    assert np.array_equal(corners, convex_hull(points[kept]))


def test_few_points_have_no_outline():
    assert middle_hull(np.random.default_rng(0).normal(size=(4, 2))).shape == (0, 2)
