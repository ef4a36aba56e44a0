"""The outline of a cloud of points: the convex hull of its middle part."""

import numpy as np

SHARE = 0.8
"""Share of the points that the outline of a cloud holds: those nearest to its median."""

MIN_POINTS = 5


def middle_hull(points: np.ndarray, *, share: float = SHARE) -> np.ndarray:
    """Return the corners of the convex hull of a share of the points, those nearest to the median of x and of y.

    Args:
        points: (n, 2).
        share: of the points, in (0, 1]; rounded up to whole points.

    Returns:
        (c, 2) corners, anticlockwise; none where there are fewer than 5 points, whose outline would say nothing.

    Example:
        >>> square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5], [90, 90]])
        >>> middle_hull(square).tolist()
        [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """
    if len(points) < MIN_POINTS:
        return np.empty((0, 2))
    far = np.linalg.norm(points - np.median(points, axis=0), axis=1)
    return convex_hull(points[np.argsort(far, kind="stable")[: int(np.ceil(share * len(points)))]])


def convex_hull(points: np.ndarray) -> np.ndarray:
    """Return the corners of the convex hull, anticlockwise from the leftmost; of points on a line its two ends.

    Reference:
        Andrew, Another efficient algorithm for convex hulls in two dimensions, Information Processing Letters 1979.
    """
    ordered = np.unique(points, axis=0)  # by x, then y
    if len(ordered) < 3:
        return ordered
    lower, upper = _chain(ordered), _chain(ordered[::-1])
    return np.array(lower[:-1] + upper[:-1])


def _chain(ordered: np.ndarray) -> list[np.ndarray]:
    """Return the points of one side of the hull: every turn goes left."""
    chain: list[np.ndarray] = []
    for point in ordered:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
