"""Hierarchies of classes as pictures: given or learned groups as a tree, and the full dendrogram of class centres."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kinfold.core.hierarchy import Hierarchy, Name
from kinfold.errors import DataError, ShapeError
from kinfold.reports.palette import Look, looks_of
from kinfold.reports.tree_sheet import FAINT, INK, MARGIN, MARK, SMALL, Legend, Sheet, text_width
from kinfold.reports.tree_text import class_counts, class_title, counted, group_title

MAX_LEAVES = 300
STUB = 0.12  # inches from the last branching to a leaf
AROUND_TEXT = 0.22  # inches that a branch is longer than the name on it
LINKAGE_WIDTH = 5.0  # inches


class _Column(NamedTuple):
    """Nodes of one depth: what stands above them, their titles, and the number of each one's parent in the next coarser column."""

    heading: str
    titles: Sequence[str]
    parent: Sequence[int]

    @property
    def width(self) -> float:
        return max(text_width(text) for text in (self.heading, *self.titles))


def draw_dendrogram(
    hierarchy: Hierarchy,
    file: str | Path,
    *,
    counts: Mapping[Name, int] | None = None,
    color_by: Mapping[Name, Name] | None = None,
    color_name: str = "",
    title: str = "",
) -> None:
    """Draw a hierarchy from the root on the left to its classes on the right, every group and class named.

    The picture grows with the number of classes. Where there are more than 300, it ends at the finest level of at most 300 groups,
    with the number of classes beside each name.

    Args:
        hierarchy: what to draw.
        file: `.png`, `.svg` or `.pdf`; written whole or not at all.
        counts: images of each class, to stand behind the names.
        color_by: class → its group in another grouping, shown as coloured marks before the classes: how far learned groups follow
            given ones. Classes that it lacks have no mark; a picture that ends at groups has none.
        color_name: what that grouping is called, above its legend.
        title: above the picture.

    Raises:
        DataError: a class has no count, or even the coarsest level has more than 300 groups.
    """
    columns = _columns(hierarchy, counts)
    leaves, coarse_first = columns[0], columns[:0:-1]
    legend, marks = Legend(), [None] * len(leaves.titles)
    if color_by is not None and len(leaves.titles) == len(hierarchy.classes):
        legend, marks = _marks(hierarchy.classes, color_by, color_name)
    starts = list(accumulate((column.width + AROUND_TEXT for column in coarse_first), initial=MARGIN))
    leaf_x = starts[-1] + STUB
    sheet = Sheet(leaf_x + MARK + leaves.width + 2 * MARGIN, len(marks), above=0.2, legend=legend, title=title)
    places = _places(columns)
    for column, place, x, end in zip(coarse_first, places[:0:-1], starts, starts[1:], strict=False):
        _branches(sheet, column, place, x, end)
    _branches(sheet, leaves, places[0], starts[-1], leaf_x, named=False)
    for row, text, look in zip(places[0], leaves.titles, marks, strict=True):
        sheet.leaf(leaf_x, row, text, look)
    sheet.save(file)


def draw_linkage(
    centres: ArrayLike,
    names: Sequence[Name],
    file: str | Path,
    *,
    color_by: Mapping[Name, Name] | None = None,
    color_name: str = "",
    title: str = "",
) -> None:
    """Draw the full dendrogram of class centres: the two most alike groups are joined again and again.

        distance(A, B) = mean over a in A, b in B of 1 - cos(a, b)

    Args:
        centres: (n, d), one for each class, 2 to 300 of them, of any length but zero.
        names: of the classes.
        file: `.png`, `.svg` or `.pdf`; written whole or not at all.
        color_by: class → its group in a grouping, shown as coloured marks before the names.
        color_name: what that grouping is called, above its legend.
        title: above the picture.

    Raises:
        ShapeError: not one centre for each name.
        DataError: too few or too many classes, or a centre that is zero or not finite.
    """
    from scipy.cluster.hierarchy import dendrogram, linkage

    joined = linkage(_unit_rows(centres, len(names)), method="average", metric="cosine")
    joined[:, 2] = joined[:, 2].clip(min=0)  # equal centres may lie -1e-16 apart
    tree = dendrogram(joined, no_plot=True)
    ordered = [names[leaf] for leaf in tree["leaves"]]
    legend, marks = _marks(ordered, color_by or {}, color_name)
    width = max(text_width(class_title(name)) for name in names) + MARK + 3 * MARGIN
    sheet = Sheet(LINKAGE_WIDTH + width, len(names), above=0.0, below=0.5, legend=legend, title=title)
    top = float(joined[-1, 2]) or 1.0
    inches = (LINKAGE_WIDTH - MARGIN) / top
    sheet.lines(
        [(LINKAGE_WIDTH - inches * distance, (place - 5) / 10) for place, distance in zip(places, distances, strict=True)]
        for places, distances in zip(tree["icoord"], tree["dcoord"], strict=True)  # scipy puts the leaves at 5, 15, 25, …
    )
    for row, (name, look) in enumerate(zip(ordered, marks, strict=True)):
        sheet.leaf(LINKAGE_WIDTH, row, class_title(name), look)
    _draw_scale(sheet, len(names), top, inches)
    sheet.save(file)


def _columns(hierarchy: Hierarchy, counts: Mapping[Name, int] | None) -> list[_Column]:
    """Return the columns of nodes from the leaves to the coarsest groups."""
    images = None if counts is None else class_counts(hierarchy, counts)
    parents = [*(level.parent for level in hierarchy.levels), (0,) * hierarchy.sizes[-1]]
    titles = [
        class_title(name) if images is None else f"{class_title(name)} ({images[i]:,})"
        for i, name in enumerate(hierarchy.classes)
    ]
    columns = [_Column("class", titles, parents[0])]
    for level, code, parent in zip(hierarchy.levels, hierarchy.codes.tolist(), parents[1:], strict=True):
        is_leaf = len(columns[-1].titles) > MAX_LEAVES
        titles = [group_title(level, group) + _size(code, group, images, is_leaf=is_leaf) for group in range(len(level.groups))]
        columns = [*([] if is_leaf else columns), _Column(level.name, titles, parent)]
    if len(columns[-1].titles) > MAX_LEAVES:
        raise DataError(
            f"the coarsest level, `{hierarchy.names[-1]}`, has {hierarchy.sizes[-1]:,} groups: up to {MAX_LEAVES} can be drawn. Add a "
            "coarser level, or draw some of the classes (`hierarchy.restricted`)."
        )
    return columns


def _size(code: Sequence[int], group: int, images: Sequence[int] | None, *, is_leaf: bool) -> str:
    """Return what stands behind a group's name: its classes where they are not drawn, its images where they are counted."""
    classes = [number for number, found in enumerate(code) if found == group]
    if is_leaf:
        return f" ({counted(len(classes), 'class', 'classes')})"
    return "" if images is None else f" ({sum(images[number] for number in classes):,})"


def _places(columns: Sequence[_Column]) -> list[list[float]]:
    """Return the row of each node of each column: leaves count from 0, others stand in the middle of their children."""
    paths = [[number] for number in range(len(columns[0].titles))]
    for path in paths:
        for column in columns:
            path.append(column.parent[path[-1]])
    order = sorted(range(len(paths)), key=lambda leaf: paths[leaf][::-1])
    places = [[0.0] * len(order)]
    for row, leaf in enumerate(order):
        places[0][leaf] = float(row)
    for below, column in pairwise(columns):
        children: list[list[float]] = [[] for _ in column.titles]
        for row, parent in zip(places[-1], below.parent, strict=True):
            children[parent].append(row)
        places.append([(min(rows) + max(rows)) / 2 for rows in children])
    return places


def _branches(sheet: Sheet, column: _Column, place: Sequence[float], x: float, end: float, *, named: bool = True) -> None:
    """Draw the branch of each node from its parent's stem, the stems, and names on the branches."""
    ends: dict[int, tuple[float, float]] = {}
    for row, parent in zip(place, column.parent, strict=True):
        first, last = ends.get(parent, (row, row))
        ends[parent] = min(first, row), max(last, row)
    sheet.lines([[(x, row), (end, row)] for row in place] + [[(x, first), (x, last)] for first, last in ends.values()])
    sheet.axes.text(x + 0.04 if named else end, -1, column.heading, color=FAINT, style="italic", **SMALL)
    for row, text in zip(place, column.titles, strict=True):
        if named:
            sheet.axes.text(x + 0.06, row - 0.1, text, color=INK, va="bottom", **SMALL)


def _marks(classes: Iterable[Name], color_by: Mapping[Name, Name], color_name: str) -> tuple[Legend, list[Look | None]]:
    """Return the legend of another grouping, and the look of each class."""
    classes = list(classes)
    looks = looks_of(color_by[name] for name in classes if name in color_by)
    return Legend(looks, color_name), [looks[color_by[name]] if name in color_by else None for name in classes]


def _unit_rows(centres: ArrayLike, n_names: int) -> np.ndarray:
    x = np.asarray(centres, dtype=np.float64)
    if x.ndim != 2 or len(x) != n_names:
        raise ShapeError(f"centres have shape {x.shape} for {n_names} names: give (n, d), one row for each name.")
    if not 2 <= len(x) <= MAX_LEAVES:
        raise DataError(f"{len(x):,} classes: a dendrogram of 2 to {MAX_LEAVES} can be read; draw some of them.")
    length = np.linalg.norm(x, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(length) & (length > 0)))
    if len(bad):
        raise DataError(f"the centre of row {bad[0]} is zero or not finite ({len(bad)} such): it has no direction to compare.")
    return x / length


def _draw_scale(sheet: Sheet, n_rows: int, top: float, inches: float) -> None:
    from matplotlib.ticker import MaxNLocator

    values = [float(value) for value in MaxNLocator(4).tick_values(0, top) if 0 <= value <= top]
    row = n_rows + 0.1
    sheet.lines([[(LINKAGE_WIDTH - inches * value, row - 0.3), (LINKAGE_WIDTH - inches * value, row)] for value in values])
    sheet.lines([[(LINKAGE_WIDTH - inches * values[-1], row - 0.3), (LINKAGE_WIDTH, row - 0.3)]])
    for value in values:
        sheet.axes.text(LINKAGE_WIDTH - inches * value, row + 0.2, f"{value:g}", color=FAINT, ha="center", va="top", **SMALL)
    caption = "1 - cosine, mean between the groups that are joined"
    sheet.axes.text(LINKAGE_WIDTH, row + 1.1, caption, color=FAINT, ha="right", va="top", **SMALL)
