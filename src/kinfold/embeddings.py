"""Embeddings with what is known of their images, and the files that hold them."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.atomic import atomic_path
from kinfold.errors import DataError, MissingExtraError, ShapeError

Name = int | str
SUFFIXES = (".npz", ".parquet")
_LEVEL = "label."


@dataclass(frozen=True, eq=False)
class EmbeddingTable:
    """Embeddings in rows, with the columns of their images that scoring and looking need.

    Attributes:
        embedding: (n, d) floating point.
        label: class of each row, as given.
        path: where each image lies; empty if unknown.
        item: row of each image in its first table; equal items never match each other.
        split: of each row; empty if unknown.
        levels: coarser groupings.
        is_query: the row asks; `None`: all rows do.
        is_gallery: the row can be found; `None`: all rows can.
    """

    embedding: np.ndarray
    label: tuple[Name, ...]
    path: tuple[str, ...] = ()
    item: np.ndarray | None = None
    split: tuple[str, ...] = ()
    levels: Mapping[str, tuple[Name, ...]] = field(default_factory=dict)
    is_query: np.ndarray | None = None
    is_gallery: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Refuse columns that do not fit the embeddings."""
        if self.embedding.ndim != 2 or self.embedding.dtype.kind != "f":
            raise ShapeError(
                f"embeddings are {self.embedding.shape} of {self.embedding.dtype}: they must be (n, d) floating point."
            )
        for name, column in self._columns().items():
            if len(column) != len(self.embedding):
                raise ShapeError(f"column `{name}` has {len(column)} rows, the embeddings have {len(self.embedding)}.")

    def __len__(self) -> int:
        return len(self.embedding)

    @property
    def sides(self) -> dict[str, np.ndarray]:
        """Who asks and who can be found, as `score_levels` and `verification` take it; empty where every row is both.

        Flags count where both are given and each marks at least one row.
        """
        query, gallery = self.is_query, self.is_gallery
        if query is None or gallery is None or not (query.any() and gallery.any()):
            return {}
        return {"is_query": query, "is_gallery": gallery}

    def subset(self, rows: np.ndarray) -> "EmbeddingTable":
        """Return the rows of a mask or of row numbers."""
        picked = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        taken = {name: _take(column, picked) for name, column in self._columns().items() if not name.startswith(_LEVEL)}
        levels = {name: _take(column, picked) for name, column in self.levels.items()}
        return replace(self, embedding=self.embedding[picked], levels=levels, **taken)

    def save(self, file: str | Path) -> None:
        """Write `.npz` (numpy, no pickles) or `.parquet` (extra `parquet`), whole or not at all."""
        file = Path(file)
        columns = {"embedding": self.embedding, **{name: _plain(name, column) for name, column in self._columns().items()}}
        with atomic_path(_with_known_suffix(file)) as temporary:
            if file.suffix == ".npz":
                with temporary.open("wb") as handle:
                    np.savez(handle, **columns)  # pyright: ignore[reportArgumentType]
            else:
                _write_parquet(temporary, columns)

    def _columns(self) -> dict[str, Sequence[Name] | np.ndarray]:
        columns: dict[str, Sequence[Name] | np.ndarray | None] = {
            "label": self.label,
            "path": self.path or None,
            "item": self.item,
            "split": self.split or None,
            "is_query": self.is_query,
            "is_gallery": self.is_gallery,
            **{_LEVEL + name: column for name, column in self.levels.items()},
        }
        return {name: column for name, column in columns.items() if column is not None}


def read_embeddings(file: str | Path) -> EmbeddingTable:
    """Read what `EmbeddingTable.save` or `kinfold embed` wrote, or any such file with the columns `embedding` and `label`.

    Raises:
        DataError: the file is missing or broken, or lacks a column.
        MissingExtraError: a Parquet file without the extra `parquet`.
    """
    file = _with_known_suffix(Path(file))
    if not file.is_file():
        raise DataError(f"{file} is no file.")
    columns = _read_npz(file) if file.suffix == ".npz" else _read_parquet(file)
    missing = {"embedding", "label"} - columns.keys()
    if missing:
        raise DataError(f"{file} has no column {', '.join(sorted(missing))}; it has {', '.join(sorted(columns))}.")
    masks = {name: columns[name].astype(bool) for name in ("is_query", "is_gallery") if name in columns}
    return EmbeddingTable(
        embedding=columns["embedding"],
        label=_names(columns["label"]),
        item=columns.get("item"),
        levels={name.removeprefix(_LEVEL): _names(column) for name, column in columns.items() if name.startswith(_LEVEL)},
        path=_texts(columns.get("path")),
        split=_texts(columns.get("split")),
        **masks,
    )


def _with_known_suffix(file: Path) -> Path:
    if file.suffix not in SUFFIXES:
        raise DataError(f"{file}: embeddings are kept in files that end in {' or '.join(SUFFIXES)}.")
    return file


def _take(column: Sequence[Name] | np.ndarray, rows: np.ndarray) -> tuple[Name, ...] | np.ndarray:
    return column[rows] if isinstance(column, np.ndarray) else tuple(column[row] for row in rows.tolist())


def _plain(name: str, column: Sequence[Name] | np.ndarray) -> np.ndarray:
    """Return a column as an array that needs no pickling: int64 where it fits, else text."""
    if isinstance(column, np.ndarray):
        return column
    if all(isinstance(value, int) for value in column):
        try:
            return np.array(column, dtype=np.int64)
        except OverflowError:
            # Exact as text: equal numbers stay equal, different ones different.
            return np.array([str(value) for value in column])
    if len({type(value) for value in column}) > 1:
        raise DataError(f"column `{name}` mixes numbers and text: make all of its values text to write it.")
    return np.array(column, dtype=np.str_)


def _names(column: np.ndarray) -> tuple[Name, ...]:
    return tuple(column.tolist())


def _texts(column: np.ndarray | None) -> tuple[str, ...]:
    return () if column is None else tuple(column.tolist())


def _read_npz(file: Path) -> dict[str, np.ndarray]:
    try:
        with file.open("rb") as handle, np.load(handle, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{file} cannot be read as an .npz of plain arrays: {error}") from error


def _write_parquet(file: Path, columns: Mapping[str, np.ndarray]) -> None:
    arrow, parquet = _pyarrow()
    embedding = columns["embedding"]
    flat = arrow.FixedSizeListArray.from_arrays(arrow.array(embedding.ravel()), embedding.shape[1])
    rest = {name: arrow.array(column.tolist()) for name, column in columns.items() if name != "embedding"}
    parquet.write_table(arrow.table({"embedding": flat, **rest}), file)


def _read_parquet(file: Path) -> dict[str, np.ndarray]:
    arrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(file)
    except (OSError, arrow.ArrowInvalid) as error:
        raise DataError(f"{file} cannot be read as Parquet: {error}") from error
    return {name: _matrix(table[name], file) if name == "embedding" else table[name].to_numpy() for name in table.column_names}


def _matrix(column: Any, file: Path) -> np.ndarray:
    """Return a column of lists as rows, in its own precision."""
    lists = column.combine_chunks()
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    if len(lists) == 0 or len(flat) % len(lists) or lists.null_count or any(len(row) * len(lists) != len(flat) for row in lists):
        raise DataError(f"{file}: the column `embedding` must hold one list of the same length in every row.")
    return flat.reshape(len(lists), -1)


def _pyarrow():
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "reading and writing .parquet") from None
    return pyarrow, pyarrow.parquet
