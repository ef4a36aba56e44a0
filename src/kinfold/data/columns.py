"""Cells of a table's columns → checked values: names, splits, flags, boxes."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from kinfold.data.levels import Name
from kinfold.data.table import SPLITS, Box
from kinfold.errors import DataError, did_you_mean

Value = TypeVar("Value")
Cell = object
"""Text from a file; text, numbers, truth values or None from a data frame."""

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,999}")
FLAGS = {"": False, "0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}
SPLIT_NAMES = {**{name: name for name in SPLITS}, "validation": "val"}


@dataclass(frozen=True)
class Columns:
    """A table's cells before they are understood.

    Attributes:
        source: how messages call it.
        cells: column name → cells; all equally long.
        line: the file line of each row, or `None`: messages then count rows from 0.
        is_text: every cell is text, so whole numbers must be recognised; otherwise types are as given.
    """

    source: str
    cells: dict[str, list[Cell]]
    line: list[int] | None = None
    is_text: bool = False

    def places(self, rows: Sequence[int], limit: int = 5) -> str:
        """Return how messages call some rows."""
        word = "row" if self.line is None else "line"
        numbers = [str(row if self.line is None else self.line[row]) for row in rows[:limit]]
        rest = f" and {len(rows) - limit:,} more" if len(rows) > limit else ""
        return f"{word}{'s' if len(rows) > 1 else ''} {', '.join(numbers)}{rest}"


def one_of_each_class(columns: Columns, labels: Sequence[Name], values: Sequence[Value], what: str) -> dict[Name, Value]:
    """Return the value that all rows of a class have.

    Args:
        columns: where they are from, for the message.
        labels: class of each row.
        values: group, or path, of each row.
        what: what the message calls two of them.

    Raises:
        DataError: a class has two.
    """
    found: dict[Name, tuple[Value, int]] = {}
    for row, (label, value) in enumerate(zip(labels, values, strict=True)):
        before, row_before = found.setdefault(label, (value, row))
        if before != value:
            raise DataError(
                f"{columns.source}: class {label!r} belongs to two {what}: {_shown(before)} and {_shown(value)} "
                f"({columns.places([row_before, row])}). Correct the rows, give two classes two names, or drop the column."
            )
    return {label: value for label, (value, _) in found.items()}


def _shown(value: object) -> str:
    return repr("/".join(map(str, value))) if isinstance(value, tuple) else repr(value)


def names(columns: Columns, column: str) -> tuple[Name, ...]:
    """Return a column of class or group names; none may be blank.

    From a text file the column is whole numbers if every cell is written as one (no leading zero, no plus), otherwise text as
    given: `001` and `1` stay different. From a data frame, numbers stay numbers and text stays text.

    Raises:
        DataError: a cell is blank, or a number is not whole.
    """
    found = names_or_none(columns, column)
    blank = [row for row, value in enumerate(found) if value is None]
    if blank:
        raise DataError(
            f"{columns.source}: column `{column}` is blank in {columns.places(blank)}. Fill it in or remove these rows."
        )
    return tuple(value for value in found if value is not None)


def names_or_none(columns: Columns, column: str) -> tuple[Name | None, ...]:
    """Return a column of names in which a blank cell is `None`."""
    cells = columns.cells[column]
    if columns.is_text:
        texts = [None if not str(cell).strip() else str(cell) for cell in cells]
        if all(WHOLE_NUMBER.fullmatch(text) for text in texts if text is not None):
            return tuple(None if text is None else int(text) for text in texts)
        return tuple(texts)
    return tuple(_name(columns, column, row) for row in range(len(cells)))


def texts(columns: Columns, column: str) -> tuple[str, ...]:
    """Return a column of text, such as paths; none may be blank."""
    cells = columns.cells[column]
    found = tuple("" if cell is None else str(cell) for cell in cells)
    blank = [row for row, text in enumerate(found) if not text.strip()]
    if blank:
        raise DataError(
            f"{columns.source}: column `{column}` is blank in {columns.places(blank)}. Fill it in or remove these rows."
        )
    return found


def splits(columns: Columns, column: str) -> tuple[str, ...]:
    """Return the split of each row: train, val (or validation) or test."""
    found = tuple("" if cell is None else str(cell).strip() for cell in columns.cells[column])
    for value in dict.fromkeys(found):
        if value not in SPLIT_NAMES:
            rows = [row for row, split in enumerate(found) if split == value]
            hint = did_you_mean(value, SPLIT_NAMES)
            raise DataError(f"{columns.source}: split {value!r} in {columns.places(rows)} is not known; {hint}")
    return tuple(SPLIT_NAMES[value] for value in found)


def flags(columns: Columns, column: str) -> np.ndarray:
    """Return a column of yes and no: True/False, 1/0; blank means no."""
    found = ["" if cell is None else str(cell).strip().lower() for cell in columns.cells[column]]
    wrong = [row for row, value in enumerate(found) if value not in FLAGS]
    if wrong:
        value = columns.cells[column][wrong[0]]
        raise DataError(
            f"{columns.source}: `{column}` is {value!r} in {columns.places(wrong)}; write True, False, 1, 0 or leave it blank."
        )
    return np.array([FLAGS[value] for value in found], dtype=bool)


def boxes(columns: Columns) -> tuple[Box | None, ...]:
    """Return the box of each row from x_1, x_2 (left, right), y_1, y_2 (top, bottom); four blank cells mean the whole picture."""
    return tuple(_box(columns, row) for row in range(len(columns.cells["x_1"])))


def _box(columns: Columns, row: int) -> Box | None:
    cells = {side: columns.cells[side][row] for side in Box._fields}
    given = {side: str(cell).strip() for side, cell in cells.items() if cell is not None and str(cell).strip()}
    if not given:
        return None
    shown = ", ".join(f"{side}={given.get(side, '')}" for side in cells)
    place = f"{columns.source}: the box in {columns.places([row])} ({shown})"
    if len(given) < len(cells):
        raise DataError(f"{place} is only partly given: fill in all four of x_1, x_2, y_1, y_2, or none.")
    if not all(re.fullmatch(r"-?[0-9]{1,18}(\.0*)?", text) for text in given.values()):
        raise DataError(f"{place} must be whole pixels.")
    box = Box(**{side: int(text.split(".")[0]) for side, text in given.items()})
    if not (0 <= box.x_1 < box.x_2 and 0 <= box.y_1 < box.y_2):
        raise DataError(f"{place} is out of order: 0 <= x_1 < x_2 (left, right) and 0 <= y_1 < y_2 (top, bottom) must hold.")
    return box


def _name(columns: Columns, column: str, row: int) -> Name | None:
    cell = columns.cells[column][row]
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    if isinstance(cell, int | np.integer):
        return int(cell)
    if isinstance(cell, float | np.floating):
        if math.isnan(cell):
            return None
        # A frame with one missing value holds whole numbers as floats; above 2^53 (2^24 in float32) neighbours are the same float.
        exact_below = 2 ** (np.finfo(type(cell)).nmant + 1)
        if float(cell).is_integer() and abs(cell) < exact_below:
            return int(cell)
        raise DataError(
            f"{columns.source}: `{column}` is the floating-point number {cell!r} in {columns.places([row])}, which cannot name a class "
            "exactly. Convert the column to whole numbers or text."
        )
    return str(cell)
