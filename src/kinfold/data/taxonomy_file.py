"""Hierarchies of classes in files: a taxonomy as CSV, TSV or Parquet, or nested folders ↔ `Hierarchy`."""

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from os import PathLike
from pathlib import Path

from kinfold.atomic import write_text
from kinfold.core.hierarchy import Hierarchy, hierarchy_from_groups
from kinfold.core.taxonomy import hierarchy_from_parents, hierarchy_from_paths
from kinfold.data.columns import Columns, names, names_or_none, one_of_each_class
from kinfold.data.hierarchies import hierarchy_of
from kinfold.data.levels import Name
from kinfold.data.read import LEVEL_PREFIX, read_table
from kinfold.data.sources import TEXT_SUFFIXES, from_file
from kinfold.errors import DataError

SEPARATORS = (">", "|", "/")
FORMS = "Expected columns: `child`, `parent`; or `label` and one for each level; or `label`, `path`; or `path` alone."


def read_hierarchy(file: str | PathLike[str]) -> Hierarchy:
    r"""Read a taxonomy.

    The header says which form it has:

    - `child, parent`: a tree, a row for every node; a blank parent marks a root. Classes are the leaves.
    - `label` and a column for each level, called `family` or `label.family`; a row for every class. Where some are called `label.…`,
      the others are ignored, so a table of images can be read too.
    - `label, path`: the ancestors of each class from the root down, with or without the class at the end.
    - `path`: the same without labels; the last name is the class.

    Paths are cut at `>`; where none is in the column, at `|`; otherwise at `/`. Levels of trees and paths are named by depth
    (`hierarchy_from_parents`). Spaces around names are dropped; names that all are whole numbers become numbers, level by level. A
    folder is understood as `read_table` does: classes are the innermost folders, those above are the levels.

    Raises:
        DataError: the file is missing, no UTF-8, without rows, or of none of these forms; a child has two parents; a class has two
            groups or two paths; levels cross; parents go round in a circle.
        ConfigError: a folder without levels.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp(), "birds.csv")
        >>> _ = file.write_text("label,family\nwren,wrens\nbarn owl,owls\ntawny owl,owls\n")
        >>> read_hierarchy(file).members("family")
        {'wrens': ('wren',), 'owls': ('barn owl', 'tawny owl')}
    """
    path = Path(file)
    if path.is_dir():
        return hierarchy_of(read_table(path))
    given = from_file(path)
    columns = _stripped(given)
    if not next(iter(columns.cells.values()), []):
        raise DataError(f"{columns.source} has no rows. {FORMS}")
    read = _form_of(columns)
    try:
        hierarchy = read(columns)
    except DataError as error:
        if str(error).startswith(columns.source):
            raise
        raise DataError(f"{columns.source}: {error}") from error
    return _with_numbers(hierarchy) if given.is_text else hierarchy


def write_hierarchy(hierarchy: Hierarchy, file: str | PathLike[str]) -> None:
    """Write a hierarchy as CSV (TSV by its suffix): `label`, then `label.<level>` from fine to coarse, a row for each class.

    `read_hierarchy` gives the same classes and groups back; groups are numbered as they first come, and names that all are whole
    numbers come back as numbers.

    Args:
        hierarchy: whatever made it.
        file: is replaced only by a complete one.

    Raises:
        DataError: the suffix is not one of a text file.
    """
    suffix = Path(file).suffix.lower()
    if suffix not in TEXT_SUFFIXES:
        raise DataError(f"a hierarchy cannot be written to {str(file)!r}: give a file that ends in {', '.join(TEXT_SUFFIXES)}.")
    columns = hierarchy.columns()
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t" if suffix in (".tsv", ".tab") else ",", lineterminator="\n")
    writer.writerow(["label", *(f"{LEVEL_PREFIX}{name}" for name in columns)])
    writer.writerows(zip(hierarchy.classes, *columns.values(), strict=True))
    write_text(Path(file), text.getvalue())


def _stripped(columns: Columns) -> Columns:
    """Drop spaces around names, and columns without a name and without content; whole numbers in text stay text for now."""
    cells = {name: [cell.strip() if isinstance(cell, str) else cell for cell in column] for name, column in columns.cells.items()}
    return replace(columns, cells={name: column for name, column in cells.items() if name or any(column)}, is_text=False)


def _form_of(columns: Columns) -> Callable[[Columns], Hierarchy]:
    header = set(columns.cells)
    is_tree = {"child", "parent"} <= header
    if is_tree and header & {"label", "path"}:
        raise DataError(f"{columns.source} has the columns {_listed(columns.cells)}, which are several taxonomies. {FORMS}")
    if is_tree:
        return _from_tree
    if "label" in header and len(header) > 1:
        return _from_paths if "path" in header and not _level_columns(columns, only_marked=True) else _from_levels
    if "path" in header and "label" not in header:
        return _from_paths
    raise DataError(f"{columns.source} has the columns {_listed(columns.cells)}, which make no taxonomy. {FORMS}")


def _from_tree(columns: Columns) -> Hierarchy:
    parent_of: dict[Name, tuple[Name | None, int]] = {}
    for row, (child, parent) in enumerate(zip(names(columns, "child"), names_or_none(columns, "parent"), strict=True)):
        before, row_before = parent_of.setdefault(child, (parent, row))
        if before != parent:
            raise DataError(
                f"{columns.source}: {child!r} has two parents, {_shown(before)} and {_shown(parent)} "
                f"({columns.places([row_before, row])}). Each node has one; remove a row, or write levels that cross as columns."
            )
    return hierarchy_from_parents({child: parent for child, (parent, _) in parent_of.items()})


def _from_levels(columns: Columns) -> Hierarchy:
    marked = _level_columns(columns, only_marked=True) or _level_columns(columns, only_marked=False)
    labels = names(columns, "label")
    groups = {}
    for level, column in marked.items():
        group_of = one_of_each_class(columns, labels, names(columns, column), f"groups of level `{level}`")
        groups[level] = list(group_of.values())
    return hierarchy_from_groups(list(dict.fromkeys(labels)), groups)


def _from_paths(columns: Columns) -> Hierarchy:
    written = names_or_none(columns, "path")
    separator = next((sign for sign in SEPARATORS if any(sign in str(path) for path in written)), SEPARATORS[-1])
    paths = [_cut("" if path is None else str(path), separator) for path in written]
    rows = [row for row, path in enumerate(paths) if "" in path]
    if rows:
        raise DataError(f"{columns.source}: a path has a blank name in {columns.places(rows)}. Fill it in or leave it out.")
    if "label" in columns.cells:
        labels = names(columns, "label")
        if all(path[-1:] == (str(label),) for label, path in zip(labels, paths, strict=True)):
            paths = [path[:-1] for path in paths]
    else:
        rows = [row for row, path in enumerate(paths) if not path]
        if rows:
            raise DataError(
                f"{columns.source}: column `path` is blank in {columns.places(rows)}. Fill it in or remove these rows."
            )
        labels, paths = tuple(path[-1] for path in paths), [path[:-1] for path in paths]
    return hierarchy_from_paths(one_of_each_class(columns, labels, paths, "paths"))


def _cut(path: str, separator: str) -> tuple[str, ...]:
    text = path.strip().strip(separator)
    return tuple(name.strip() for name in text.split(separator)) if text else ()


def _level_columns(columns: Columns, *, only_marked: bool) -> dict[str, str]:
    """Return level → column: those called `label.…` (and `category`, as in tables), or all others."""
    others = [name for name in columns.cells if name != "label"]
    if not only_marked:
        return {name: name for name in others}
    if not any(name.startswith(LEVEL_PREFIX) for name in others):
        return {}
    return {name.removeprefix(LEVEL_PREFIX): name for name in others if name.startswith(LEVEL_PREFIX) or name == "category"}


def _with_numbers(hierarchy: Hierarchy) -> Hierarchy:
    """Turn the classes, and the groups of each level, into whole numbers where all of them are written as one: as tables do."""
    cells = Columns("", {"label": list(hierarchy.classes), **{k: list(v) for k, v in hierarchy.columns().items()}}, is_text=True)
    return hierarchy_from_groups(names(cells, "label"), {level: names(cells, level) for level in hierarchy.names})


def _listed(header: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in header)


def _shown(parent: Name | None) -> str:
    return "none (a root)" if parent is None else repr(parent)
