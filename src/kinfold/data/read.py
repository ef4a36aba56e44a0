"""`read_table`: any table, data frame or folder of images → a checked Table."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from posixpath import normpath

import numpy as np

from kinfold.data.columns import Cell, Columns, boxes, flags, names, names_or_none, one_of_each_class, splits, texts
from kinfold.data.folders import from_folder
from kinfold.data.levels import Name
from kinfold.data.sources import Frame, from_file, from_frame
from kinfold.data.table import Box, Table
from kinfold.errors import DataError, did_you_mean

TableSource = str | PathLike[str] | Mapping[str, Iterable[Cell]] | Frame
"""A table file, a folder, a mapping from column name to values, or a pandas or polars frame."""

LEVEL_PREFIX = "label."
COLUMNS = ("path", "label", "split", "is_query", "is_gallery", "camera", "sequence", "category", *Box._fields)


def read_table(source: TableSource, *, root: str | PathLike[str] | None = None) -> Table:
    """Read a data set's table, understand its columns, and check it.

    Columns: `path`, `label`, and optionally `split` (train, val or validation, test; without the column every row is train),
    `is_query` and `is_gallery`, `camera`, `sequence`, boxes `x_1, x_2, y_1, y_2`, and coarser levels `label.<level>`
    (`category`, as open-metric-learning writes it, is the level of that name). Other columns are ignored. `Table.summary()`
    says how everything was understood. Image files are not opened or looked for.

    Args:
        source: a CSV, TSV or Parquet file (extra `parquet`), a pandas or polars frame, a mapping from column name to values,
            a folder that holds a `table.csv`, or a folder per class (see `kinfold.data.folders.from_folder`).
        root: folder that relative paths start from; by default the file's folder, or the working folder for a data frame.

    Raises:
        DataError: what is wrong, in which rows, and what to do.
        MissingExtraError: Parquet without pyarrow.

    Example:
        >>> table = read_table({"path": ["a.jpg", "b.jpg"], "label": ["wren", "owl"], "split": ["train", "test"]})
        >>> table.classes, len(table.of_split("train"))
        (('owl', 'wren'), 1)
    """
    if not isinstance(source, str | PathLike):
        return _interpreted(from_frame(source), Path(root or "."), ())
    path = Path(source)
    if path.is_dir() and not (path / "table.csv").is_file():
        if root is not None:
            raise DataError(f"`root` is {str(root)!r}, but the images of a folder lie in that folder: leave `root` out.")
        columns, notes = from_folder(path)
        return _interpreted(columns, path, notes)
    file = path / "table.csv" if path.is_dir() else path
    return _interpreted(from_file(file), Path(root) if root is not None else file.parent, ())


def _interpreted(columns: Columns, root: Path, notes: tuple[str, ...]) -> Table:
    cells = columns.cells
    for needed in ("path", "label"):
        if needed not in cells:
            raise DataError(f"{columns.source} has no column `{needed}`; {did_you_mean(needed, cells)}")
    path, label = texts(columns, "path"), names(columns, "label")
    if not path:
        raise DataError(f"{columns.source} has no rows.")
    box = boxes(columns) if _all_or_none(columns, Box._fields) else None
    _check_paths(columns, path, box)
    has_flags = _all_or_none(columns, ("is_query", "is_gallery"))
    return Table(
        path=path,
        label=label,
        split=splits(columns, "split") if "split" in cells else ("train",) * len(path),
        item=np.arange(len(path)),
        root=root,
        levels=_levels(columns, label),
        is_query=flags(columns, "is_query") if has_flags else None,
        is_gallery=flags(columns, "is_gallery") if has_flags else None,
        camera=names_or_none(columns, "camera") if "camera" in cells else None,
        sequence=names_or_none(columns, "sequence") if "sequence" in cells else None,
        boxes=box,
        notes=(*_notes(columns, label, root), *notes),
    )


def _all_or_none(columns: Columns, wanted: tuple[str, ...]) -> bool:
    given = [name for name in wanted if name in columns.cells]
    if given and len(given) < len(wanted):
        missing = [name for name in wanted if name not in given]
        raise DataError(f"{columns.source} has {', '.join(given)} but not {', '.join(missing)}: give all of them or none.")
    return bool(given)


def _check_paths(columns: Columns, path: tuple[str, ...], box: tuple[Box | None, ...] | None) -> None:
    """Refuse an image that appears twice; with boxes, one picture may show several objects."""
    first: dict[tuple[str, Box | None], int] = {}
    for row, text in enumerate(path):
        earlier = first.setdefault((normpath(text), box[row] if box else None), row)
        if earlier != row:
            raise DataError(
                f"{columns.source}: path {text!r} appears twice, in {columns.places([earlier, row])}. Remove one of the rows."
            )


def _levels(columns: Columns, label: tuple[Name, ...]) -> dict[str, tuple[Name, ...]]:
    levels: dict[str, tuple[Name, ...]] = {}
    for column in columns.cells:
        if not (column.startswith(LEVEL_PREFIX) or column == "category"):
            continue
        level = column.removeprefix(LEVEL_PREFIX)
        if not level or level in levels:
            raise DataError(f"{columns.source}: column `{column}` gives no new name of a level. Rename it, as in `label.family`.")
        levels[level] = names(columns, column)
        one_of_each_class(columns, label, levels[level], f"groups of level `{level}`")
    return levels


def _notes(columns: Columns, label: tuple[Name, ...], root: Path) -> tuple[str, ...]:
    kind = "whole numbers" if all(isinstance(name, int) for name in label) else "text"
    lines = [f"read from {columns.source}; relative paths start from {str(root)!r}", f"label: column `label`, {kind}"]
    if "split" not in columns.cells:
        lines.append("split: no column `split`, so every row is train")
    used = [name for name in COLUMNS if name in columns.cells and name not in ("path", "label", "category")]
    if used:
        lines.append("also used: " + ", ".join(f"`{name}`" for name in used))
    levels = [name for name in columns.cells if name.startswith(LEVEL_PREFIX) or name == "category"]
    if levels:
        lines.append("levels: " + ", ".join(f"`{name}`" for name in levels))
    ignored = [name for name in columns.cells if name not in COLUMNS and name not in levels]
    if ignored:
        lines.append("ignored columns: " + ", ".join(f"`{name}`" for name in ignored))
    return tuple(lines)
