"""Splits by classes: no class is ever on two sides."""

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from kinfold.data.levels import Name
from kinfold.data.table import Table
from kinfold.errors import ConfigError, DataError


def hold_out_classes(table: Table, *, every: int = 5) -> Table:
    """Return the table with every k-th training class, in sorted order, turned into `val`.

    Choices made on these classes never touch the test classes. Where the table has queries and a gallery, held-out images are both.

    Args:
        table: with training rows, and without `val` rows.
        every: k; the classes k, 2k, 3k, … are held out; >= 2.

    Raises:
        ConfigError: `every` is below 2.
        DataError: the table already has `val` rows, or fewer than k training classes.

    Example:
        >>> from kinfold.data.read import read_table
        >>> table = read_table({"path": ["a", "b", "c", "d"], "label": [1, 2, 3, 4]})
        >>> hold_out_classes(table, every=2).split
        ('train', 'val', 'train', 'val')
    """
    if every < 2:
        raise ConfigError(f"every = {every}: hold out every second class at most, so that some are left for training.")
    classes = _training_classes(table)
    if len(classes) < every:
        raise DataError(f"no class to hold out: {len(classes)} training classes, every = {every}. Lower `every`.")
    return _to_val(table, classes[every - 1 :: every])


def fold(table: Table, k: int, *, n: int = 4, seed: int | None = None) -> Table:
    """Return the table with fold k of its training classes turned into `val`; each class is in exactly one of the n folds.

    Args:
        table: with training rows, and without `val` rows.
        k: which fold, from 0 to n - 1.
        n: number of folds, whose numbers of classes differ by at most one; >= 2.
        seed: `None` cuts the sorted classes into n runs; a number shuffles them first.

    Raises:
        ConfigError: k or n is out of range.
        DataError: the table already has `val` rows, or fewer than n training classes.
    """
    if n < 2 or not 0 <= k < n:
        raise ConfigError(f"fold k = {k} of n = {n}: n must be at least 2 and k lie from 0 to n - 1.")
    classes = _training_classes(table)
    if len(classes) < n:
        raise DataError(f"{len(classes)} training classes cannot make {n} folds. Lower `n`.")
    order = _order(len(classes), seed)
    return _to_val(table, [classes[place] for place in np.array_split(order, n)[k]])


def split_classes(table: Table, *, train: float = 0.5, val: float = 0.0, seed: int | None = None) -> Table:
    """Return the table with a new split by classes: the first part trains, the next validates, the rest tests.

    With the default, the first half of the sorted classes trains and the second half tests, as usual for CUB and Cars.
    The old split, queries and gallery are dropped.

    Args:
        table: whatever its split.
        train: share of the classes, in (0, 1].
        val: share of the classes, in [0, 1); train + val <= 1.
        seed: `None` keeps the classes sorted; a number shuffles them first.

    Raises:
        ConfigError: the shares are out of range.
        DataError: a part that was asked for would have no class.
    """
    if not (0 < train <= 1 and 0 <= val < 1 and train + val <= 1 + 1e-9):
        raise ConfigError(
            f"train = {train}, val = {val}: shares of the classes must be positive (val may be 0) and sum to at most 1."
        )
    n = table.n_classes
    end_train, end_val = _rounded(train * n), _rounded(min(1.0, train + val) * n)
    sizes = {"train": end_train, "val": end_val - end_train, "test": n - end_val}
    wanted = {"train": train, "val": val, "test": 1 - train - val}
    for name, size in sizes.items():
        if wanted[name] > 1e-9 and not size:
            raise DataError(
                f"{n} classes leave none for {name} at a share of {wanted[name]:.3g}: change the shares or add classes."
            )
    order = _order(n, seed)
    name_of = np.empty(n, dtype=object)
    name_of[order] = [name for name, size in sizes.items() for _ in range(size)]
    return replace(table, split=tuple(name_of[table.class_index]), is_query=None, is_gallery=None)


def split_query_gallery(table: Table, *, split: str = "test", fraction: float = 0.5, seed: int = 0) -> Table:
    """Return the table with a part of each class's images in one split as queries and the rest as gallery.

    A class of one image goes to the gallery; every other class keeps at least one image on each side.

    Args:
        table: queries and gallery of its other splits are kept; where it has none, the other splits' images are both.
        split: whose images are divided.
        fraction: share of a class's images that become queries, in (0, 1).
        seed: chooses them.

    Raises:
        ConfigError: the fraction is out of range.
    """
    if not 0 < fraction < 1:
        raise ConfigError(f"fraction = {fraction}: the share of queries must lie between 0 and 1.")
    is_query, is_gallery = (
        np.ones(len(table), dtype=bool) if old is None else old.copy() for old in (table.is_query, table.is_gallery)
    )
    rows = table.split_rows(split)
    generator = np.random.default_rng(seed)
    for code in np.unique(table.class_index[rows]):
        own = generator.permutation(rows[table.class_index[rows] == code])
        n_queries = min(max(1, _rounded(fraction * len(own))), len(own) - 1)
        is_query[own], is_gallery[own] = np.arange(len(own)) < n_queries, np.arange(len(own)) >= n_queries
    return replace(table, is_query=is_query, is_gallery=is_gallery)


def _training_classes(table: Table) -> tuple[Name, ...]:
    n_val = table.split_rows("val").size
    if n_val:
        raise DataError(f"the table already has {n_val:,} val rows: train on it as it is, or drop them first.")
    return table.of_split("train").classes


def _to_val(table: Table, classes: Collection[Name]) -> Table:
    held_out = set(classes)
    is_moved = np.array(
        [split == "train" and label in held_out for split, label in zip(table.split, table.label, strict=True)], dtype=bool
    )
    split = tuple("val" if moved else name for moved, name in zip(is_moved, table.split, strict=True))
    is_query, is_gallery = (None if old is None else old | is_moved for old in (table.is_query, table.is_gallery))
    return replace(table, split=split, is_query=is_query, is_gallery=is_gallery)


def _order(n: int, seed: int | None) -> np.ndarray:
    return np.arange(n) if seed is None else np.random.default_rng(seed).permutation(n)


def _rounded(value: float) -> int:
    return math.floor(value + 0.5)
