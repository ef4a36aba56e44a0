"""Where tables come from: CSV, TSV and Parquet files, data frames → columns of cells."""

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from kinfold.data.columns import Cell, Columns
from kinfold.errors import DataError, MissingExtraError

TEXT_SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
PARQUET_SUFFIXES = (".parquet", ".pq")


class Frame(Protocol):
    """A pandas or polars data frame: column names, and a column for each."""

    @property
    def columns(self) -> Iterable[str]:
        """Names of the columns."""
        ...

    def __getitem__(self, key: str, /) -> Iterable[Cell]: ...


def from_file(path: Path) -> Columns:
    """Read the cells of a CSV, TSV or Parquet file.

    Raises:
        DataError: the file is missing, of another kind, not UTF-8, or its rows are not equally long.
        MissingExtraError: Parquet without pyarrow.
    """
    suffix = path.suffix.lower()
    if not path.is_file():
        raise DataError(f"table {str(path)!r} does not exist: give a .csv, .tsv or .parquet file, or a folder of images.")
    if suffix in PARQUET_SUFFIXES:
        return _from_parquet(path)
    if suffix in TEXT_SUFFIXES:
        return _from_text(path)
    raise DataError(
        f"table {str(path)!r} is of no kind that can be read: give a .csv, .tsv or .parquet file, or a folder of images."
    )


def from_frame(frame: Frame | Mapping[str, Iterable[Cell]]) -> Columns:
    """Read the cells of a pandas or polars frame, or of a mapping from column name to values.

    Raises:
        DataError: the object is none of these, or its columns are not equally long.
    """
    if isinstance(frame, Mapping):
        header = list(frame)
    elif hasattr(frame, "columns") and hasattr(frame, "__getitem__"):
        header = list(frame.columns)
    else:
        raise DataError(
            f"a table cannot be read from an object of type {type(frame).__name__}: give a path, a folder, a pandas or polars frame, "
            "or a mapping from column name to values."
        )
    source = f"data frame of type {type(frame).__name__}"
    _check_header([str(name) for name in header], source)
    cells = {str(name): _plain(frame[name]) for name in header}
    lengths = {name: len(column) for name, column in cells.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{source}: the columns are not equally long: {lengths}.")
    return Columns(source, cells)


def _from_text(path: Path) -> Columns:
    source = f"table {str(path)!r}"
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            delimiter = "\t" if path.suffix.lower() in (".tsv", ".tab") else max(",;\t", key=first.count)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            return _from_rows(((reader.line_num, row) for row in reader if any(cell.strip() for cell in row)), source)
    except UnicodeDecodeError as error:
        raise DataError(f"{source} is not UTF-8 text ({error.reason} at byte {error.start}): save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"{source}, line {reader.line_num}: {error}. Check the quotes of this line.") from error


def _from_rows(numbered: Iterable[tuple[int, list[str]]], source: str) -> Columns:
    rows = iter(numbered)
    header = [name.strip() for name in next(rows, (0, []))[1]]
    _check_header(header, source)
    line, cells = [], []
    for number, row in rows:
        if len(row) != len(header):
            raise DataError(
                f"{source}, line {number}: {len(row)} cells, but the header has {len(header)}. Quote cells that hold the delimiter."
            )
        line.append(number)
        cells.append(row)
    columns = zip(*cells, strict=True) if cells else ((),) * len(header)
    return Columns(source, {name: list(column) for name, column in zip(header, columns, strict=True)}, line, is_text=True)


def _from_parquet(path: Path) -> Columns:
    try:
        import pyarrow  # optional
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet", f"reading {str(path)!r}") from error
    source = f"table {str(path)!r}"
    try:
        arrow = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{source} is not a Parquet file that can be read: {error}") from error
    _check_header(arrow.column_names, source)
    return Columns(source, {name: _plain(arrow.column(name).to_pylist()) for name in arrow.column_names})


def _check_header(header: list[str], source: str) -> None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise DataError(f"{source}: the columns {', '.join(map(repr, twice))} appear twice. Rename or remove one of each.")


def _plain(column: Any) -> list[Cell]:
    """Return a column as plain values with `None` where a value is missing."""
    if hasattr(column, "notna"):  # pandas: NA and NaT cannot be compared with themselves
        column = column.astype(object).where(column.notna(), None)
    values = column.to_list() if hasattr(column, "to_list") else list(column)
    return [None if isinstance(value, float) and math.isnan(value) else value for value in values]
