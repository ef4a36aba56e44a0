"""Pictures that a table holds more than once: with two labels, in two splits, or just twice."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kinfold.checks.copies import components, copies
from kinfold.checks.finding import Finding, places
from kinfold.checks.images import Pictures
from kinfold.checks.wording import listed, shown
from kinfold.data.levels import sorted_names
from kinfold.data.table import SPLITS, Table

SAME_PICTURE = "the same picture"
COPIES = "copies of one picture (re-encoded, resized or slightly changed)"


@dataclass(frozen=True)
class Group:
    """Rows that show one picture.

    Attributes:
        rows: of the table, ascending; at least two.
        is_equal: pixel by pixel; otherwise some are copies that were re-encoded, resized or slightly changed.
    """

    rows: tuple[int, ...]
    is_equal: bool


def duplicate_findings(table: Table, pictures: Pictures) -> list[Finding]:
    """Find pictures that come more than once.

    Returns:
        `two_labels` (error): one picture under several labels; `split_leak` (error): one picture in several splits; `duplicate`
        (warning): twice in one class of one split; one finding per group of rows. `mirrored_copy` (warning): a picture and its
        mirror image with two labels or in two splits.
    """
    distinct, same = _equal(pictures)
    groups = _groups(pictures, distinct, same)
    findings = [finding for group in groups for finding in _of_group(table, group)]
    group_of = {row: number for number, group in enumerate(groups) for row in group.rows}
    for one, other in copies(pictures, distinct, mirrored=True).tolist():
        is_told = one in group_of and group_of[one] == group_of.get(other)  # copies of a picture that is its own mirror image
        is_apart = table.label[one] != table.label[other] or table.split[one] != table.split[other]
        if is_apart and not is_told:
            findings.append(_mirrored(table, (one, other)))
    return findings


def _equal(pictures: Pictures) -> tuple[np.ndarray, dict[int, list[int]]]:
    """Return the first row of every distinct picture, and for each of them all rows that are equal to it."""
    rows_of: dict[bytes, list[int]] = {}
    for row in np.flatnonzero(pictures.is_readable).tolist():
        rows_of.setdefault(pictures.digest[row], []).append(row)
    return np.array([rows[0] for rows in rows_of.values()], dtype=np.int64), {rows[0]: rows for rows in rows_of.values()}


def _groups(pictures: Pictures, distinct: np.ndarray, same: dict[int, list[int]]) -> list[Group]:
    joined = components(len(pictures), copies(pictures, distinct).tolist())
    groups = [Group(tuple(sorted(row for first in firsts for row in same[first])), is_equal=False) for firsts in joined]
    taken = {row for group in groups for row in group.rows}
    groups += [Group(tuple(rows), is_equal=True) for first, rows in same.items() if len(rows) > 1 and first not in taken]
    return sorted(groups, key=lambda group: group.rows)


def _of_group(table: Table, group: Group) -> Iterator[Finding]:
    labels, splits = _labels(table, group.rows), _splits(table, group.rows)
    images = f"{len(group.rows)} images are {SAME_PICTURE if group.is_equal else COPIES}"
    if len(labels) > 1:
        named = ", ".join(f"{shown(label)} ({' and '.join(splits)})" for label, splits in labels[:5])
        more = f" and {len(labels) - 5:,} more" if len(labels) > 5 else ""
        yield Finding(
            "two_labels",
            "error",
            f"{images} but carry {len(labels)} labels: {named}{more}",
            "look at them, keep the row with the right label and remove the others; if both labels are right, keep neither",
            **places(table, group.rows),
        )
    if len(splits) > 1:
        yield Finding(
            "split_leak",
            "error",
            f"{images} and lie in {' and '.join(splits)} ({'label' if len(labels) == 1 else 'labels'} {listed([label for label, _ in labels])})",
            f"remove the rows of {' and '.join(splits[:-1])}: a score on pictures that were seen before is no measure of new ones",
            **places(table, group.rows),
        )
    elif len(labels) == 1:
        yield Finding(
            "duplicate",
            "warning",
            f"{images} of class {shown(labels[0][0])} in {splits[0]}",
            "keep one of them; in an evaluation split, each finds its copy at once and lifts the score",
            **places(table, group.rows),
        )


def _mirrored(table: Table, rows: tuple[int, ...]) -> Finding:
    where = ", ".join(f"{shown(label)} ({' and '.join(splits)})" for label, splits in _labels(table, rows))
    return Finding(
        "mirrored_copy",
        "warning",
        f"an image is the mirror image of another: {where}",
        "look at them; if they show one object, treat them as copies: one label, one split",
        **places(table, rows),
    )


def _labels(table: Table, rows: tuple[int, ...]) -> list[tuple[str | int, list[str]]]:
    """Return the labels of some rows in order, each with its splits."""
    names = sorted_names(tuple(table.label[row] for row in rows))
    return [(name, _splits(table, tuple(row for row in rows if table.label[row] == name))) for name in names]


def _splits(table: Table, rows: tuple[int, ...]) -> list[str]:
    present = {table.split[row] for row in rows}
    return [split for split in SPLITS if split in present]
