"""The table of a data set: one row per image, with its class, split and coarser groupings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from kinfold.data.levels import Name, dense_codes, nests, one_chain, sorted_names
from kinfold.errors import ConfigError, DataError, ShapeError, did_you_mean

SPLITS = ("train", "val", "test")


class Box(NamedTuple):
    """The part of the picture that shows the object, in pixels: columns x_1 to x_2 (right end not included), rows y_1 to y_2."""

    x_1: int
    x_2: int
    y_1: int
    y_2: int

    @property
    def corners(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom: what Pillow's `crop` takes."""
        return self.x_1, self.y_1, self.x_2, self.y_2


@dataclass(frozen=True, eq=False)
class Table:
    """One row per image; made by `read_table`, which checks it. Arrays and tuples are not to be changed in place.

    Attributes:
        path: of the image, absolute or relative to `root`.
        label: class, as given: text, or a whole number of any size.
        split: `train`, `val` or `test`.
        item: row number in the table as it was read; kept by subsets, so that it names an image for good.
        root: folder that relative paths start from.
        levels: coarser groupings, name → one value per row; each is a partition of the classes.
        is_query: the image asks, or `None` where every image of a split is query and gallery at once.
        is_gallery: the image can be found.
        camera: who took the image, for re-identification; `None` in a row means unknown.
        sequence: the burst or track the image belongs to.
        boxes: the object's box per row, `None` in a row means the whole picture.
        notes: how the source was understood, a line each.
        source: what holds the images by item where they are not files (`table_from_dataset`).
    """

    path: tuple[str, ...]
    label: tuple[Name, ...]
    split: tuple[str, ...]
    item: np.ndarray
    root: Path
    levels: Mapping[str, tuple[Name, ...]] = field(default_factory=dict)
    is_query: np.ndarray | None = None
    is_gallery: np.ndarray | None = None
    camera: tuple[Name | None, ...] | None = None
    sequence: tuple[Name | None, ...] | None = None
    boxes: tuple[Box | None, ...] | None = None
    notes: tuple[str, ...] = ()
    source: object | None = None

    def __post_init__(self) -> None:
        """Refuse columns of unequal length."""
        for name, column in {**self._columns(), **self.levels}.items():
            if len(column) != len(self.path):
                raise ShapeError(
                    f"table column `{name}` has {len(column)} rows, `path` has {len(self.path)}: give one value per image."
                )

    def __len__(self) -> int:
        return len(self.path)

    def __repr__(self) -> str:
        return f"Table({len(self):,} images, {self.n_classes:,} classes, levels: {', '.join(self.levels) or 'none'})"

    @cached_property
    def classes(self) -> tuple[Name, ...]:
        """The distinct labels of these rows in order: whole numbers by value, then text by character."""
        return sorted_names(self.label)

    @property
    def n_classes(self) -> int:
        """Number of distinct labels."""
        return len(self.classes)

    @cached_property
    def class_index(self) -> np.ndarray:
        """Each row's class as its place in `classes`, int64."""
        return dense_codes(self.label)

    def image_path(self, row: int) -> Path:
        """Return where the image of a row lies."""
        return self.root / self.path[row]

    def subset(self, rows: ArrayLike) -> "Table":
        """Return a table of some rows, in the order given; `item` keeps their first numbers.

        Args:
            rows: a mask with one truth value per row, or distinct row numbers from 0.

        Raises:
            ShapeError: the mask has another length, or a row number is outside the table or appears twice.
        """
        picked = self._row_numbers(rows)
        columns = {name: _take(column, picked) for name, column in self._columns().items()}
        return replace(self, levels={name: _take(column, picked) for name, column in self.levels.items()}, **columns)

    def split_rows(self, name: str) -> np.ndarray:
        """Return the row numbers of a split (`train`, `val` or `test`), int64."""
        if name not in SPLITS:
            raise ConfigError(f"split {name!r} is not known; {did_you_mean(name, SPLITS)}")
        return np.flatnonzero(np.fromiter((split == name for split in self.split), dtype=bool, count=len(self)))

    def of_split(self, name: str) -> "Table":
        """Return the rows of a split as a table, whose classes count from 0 again; empty where there are none."""
        return self.subset(self.split_rows(name))

    def level_names(self, level: str) -> tuple[Name, ...]:
        """Return the distinct groups of a level in order."""
        return sorted_names(self._level(level))

    def level_codes(self, level: str) -> np.ndarray:
        """Return each row's group as its place in `level_names(level)`, int64.

        Raises:
            ConfigError: the table has no such level.
        """
        return dense_codes(self._level(level))

    def nests(self, fine: str, coarse: str) -> bool:
        """Return whether every group of one level lies in one group of another."""
        return nests(self.level_codes(fine), self.level_codes(coarse))

    def chain(self) -> tuple[str, ...]:
        """Return the levels from fine to coarse if each nests in the next; empty where any two cross (each then stands alone)."""
        return one_chain({name: dense_codes(values) for name, values in self.levels.items()})

    def shared_classes(self, first: str = "train", second: str = "test") -> tuple[Name, ...]:
        """Return the classes that have images in both splits, in order."""
        one, other = ({self.label[row] for row in self.split_rows(split)} for split in (first, second))
        return sorted_names(tuple(one & other))

    def check_disjoint(self, first: str = "train", second: str = "test") -> None:
        """Stop if a class has images in both splits.

        Raises:
            DataError: names the first of them.
        """
        shared = self.shared_classes(first, second)
        if shared:
            raise DataError(
                f"{len(shared)} classes have images in both {first} and {second}: {_some(shared)}. Scores on {second} would not be on "
                "unseen classes; `split_classes` makes a split without overlap."
            )

    def check_files(self) -> None:
        """Stop if an image file does not exist.

        Raises:
            DataError: names the first of them and the root.
        """
        missing = [self.path[row] for row in range(len(self)) if not self.image_path(row).is_file()]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(self)} image files do not exist: {_some(missing)}. Relative paths start from "
                f"{str(self.root)!r}; pass another `root` if the images lie elsewhere."
            )

    def summary(self) -> str:
        """Return, in lines for people, how the table was understood: columns, counts, levels, queries, overlaps."""
        return "\n".join(
            [f"{len(self):,} images of {self.n_classes:,} classes", *self.notes, *self._counts(), *self._relations()]
        )

    def _counts(self) -> list[str]:
        lines = []
        for split in SPLITS:
            rows = self.split_rows(split)
            if not rows.size:
                continue
            line = f"{split}: {len(rows):,} images of {len({self.label[row] for row in rows}):,} classes"
            if self.is_query is not None and self.is_gallery is not None and split != "train":
                query, gallery = self.is_query[rows], self.is_gallery[rows]
                line += f", {query.sum():,} queries, {gallery.sum():,} in the gallery, {(~query & ~gallery).sum():,} neither"
            lines.append(line)
        return lines

    def _relations(self) -> list[str]:
        lines = [f"level {name}: {len(self.level_names(name)):,} groups" for name in self.levels]
        if self.chain():
            lines.append("levels nest, fine to coarse: " + " → ".join(("label", *self.chain())))
        for one, other in combinations(self.levels, 2):
            if not self.nests(one, other) and not self.nests(other, one):
                lines.append(f"levels {one} and {other} cross: neither nests in the other")
        for first, second in combinations(SPLITS, 2):
            shared = self.shared_classes(first, second)
            if shared:
                lines.append(f"overlap: {len(shared):,} classes have images in both {first} and {second}: {_some(shared)}")
        return lines

    def _level(self, level: str) -> tuple[Name, ...]:
        if level not in self.levels:
            raise ConfigError(f"the table has no level {level!r}; {did_you_mean(level, self.levels)}")
        return self.levels[level]

    def _columns(self) -> dict:
        """Return what has one value per row, levels apart."""
        columns = {
            column.name: getattr(self, column.name)
            for column in fields(self)
            if column.name not in ("root", "levels", "notes", "source")
        }
        return {name: column for name, column in columns.items() if column is not None}

    def _row_numbers(self, rows: ArrayLike) -> np.ndarray:
        picked = np.asarray(rows)
        if picked.dtype == np.bool_:
            if picked.shape != (len(self),):
                raise ShapeError(f"the mask has shape {picked.shape}, the table {len(self)} rows: give one truth value per row.")
            return np.flatnonzero(picked)
        if picked.size == 0:
            return np.empty(0, dtype=np.int64)
        if picked.ndim != 1 or picked.dtype.kind not in "iu":
            raise ShapeError(f"rows are of shape {picked.shape} and type {picked.dtype}: give a mask or a list of row numbers.")
        if picked.min() < 0 or picked.max() >= len(self) or len(np.unique(picked)) != len(picked):
            raise ShapeError(
                f"row numbers must be distinct and lie from 0 to {len(self) - 1}; given: {picked.min()} to {picked.max()}."
            )
        return picked.astype(np.int64)


def _take(column: Sequence | np.ndarray, rows: np.ndarray) -> tuple | np.ndarray:
    return column[rows] if isinstance(column, np.ndarray) else tuple(column[row] for row in rows.tolist())


def _some(names: Sequence[Name], limit: int = 5) -> str:
    rest = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(repr(name) for name in names[:limit]) + rest
