"""Images that cannot be read, and images that show nothing."""

import numpy as np

from kinfold.checks.finding import Finding, places
from kinfold.checks.images import Pictures
from kinfold.checks.wording import counted
from kinfold.data.table import Table

SMALL = 16


def image_findings(table: Table, pictures: Pictures) -> list[Finding]:
    """Look at every image for itself.

    Returns:
        `missing_image` (error): files that do not exist, all in one finding. `unreadable_image` (error): one finding each, with the
        reason. `blank_image` (note): one colour only. `small_image` (note): a side below 16 pixels.
    """
    missing = [row for row in pictures.fault if _is_missing(table, row)]
    findings = _missing(table, missing)
    for row in sorted(set(pictures.fault) - set(missing)):
        findings.append(
            Finding(
                "unreadable_image",
                "error",
                pictures.fault[row],
                'otherwise training stops at it, or leaves it out with batches.on_broken = "skip"',
                **places(table, [row]),
            )
        )
    readable = pictures.is_readable
    blank = np.flatnonzero(readable & pictures.is_blank).tolist()
    if blank:
        message = f"{counted(len(blank), 'image is', 'images are')} of one colour all over"
        findings.append(
            Finding("blank_image", "note", message, "look at them: a placeholder has no class", **places(table, blank))
        )
    small = np.flatnonzero(readable & (pictures.size.min(axis=1) < SMALL)).tolist()
    if small:
        width, height = pictures.size[min(small, key=lambda row: pictures.size[row].min())]
        message = (
            f"{counted(len(small), 'image has', 'images have')} a side below {SMALL} pixels, the smallest {width} × {height}"
        )
        findings.append(
            Finding("small_image", "note", message, "look at them: little can be learned from them", **places(table, small))
        )
    return findings


def _missing(table: Table, rows: list[int]) -> list[Finding]:
    if not rows:
        return []
    return [
        Finding(
            "missing_image",
            "error",
            f"{len(rows):,} of {counted(len(table), 'image file')} {'does' if len(rows) == 1 else 'do'} not exist; relative paths start "
            f"from {str(table.root)!r}",
            "correct the paths, or give the folder that they start from",
            **places(table, rows),
        )
    ]


def _is_missing(table: Table, row: int) -> bool:
    return table.source is None and not table.image_path(row).exists()
