"""A table's coarser levels → a hierarchy of its classes, and back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from kinfold.core.hierarchy import Hierarchy, hierarchy_from_groups
from kinfold.data.levels import Name, dense_codes, nests
from kinfold.data.table import Table
from kinfold.errors import ConfigError, DataError, did_you_mean


def hierarchy_of(table: Table, levels: str | Sequence[str] | None = None) -> Hierarchy:
    """Return the hierarchy of a table's classes that its columns `label.<level>` give.

    Class i of the hierarchy is `table.classes[i]`; levels are sorted from fine to coarse, whatever the order of the columns.

    Args:
        table: with at least one coarser level.
        levels: the name of one level, or the names of several that nest in each other; `None`: all of them.

    Raises:
        ConfigError: the table has no level, or none of that name; two levels cross (the message shows the chains one can name).
        DataError: a class lies in two groups of a level.

    Example:
        >>> from kinfold.data.read import read_table
        >>> columns = {"path": ["a", "b", "c"], "label": ["wren", "owl", "gull"], "label.order": ["song", "night", "shore"]}
        >>> hierarchy_of(read_table(columns)).members("order")
        {'shore': ('gull',), 'night': ('owl',), 'song': ('wren',)}
    """
    groups = _group_of_class(table, _named(table, levels))
    chains = _chains(groups)
    if len(chains) > 1:
        one, other = next(pair for pair in combinations(groups, 2) if not any(set(pair) <= set(chain) for chain in chains))
        choices = " or ".join(f"levels={chain[0]!r}" if len(chain) == 1 else f"levels={chain!r}" for chain in chains)
        raise ConfigError(
            f"levels `{one}` and `{other}` cross: neither nests in the other, so they are no single hierarchy. Name one chain: {choices}."
        )
    return hierarchy_from_groups(table.classes, groups)


def chains_of(table: Table) -> tuple[tuple[str, ...], ...]:
    """Return the longest chains of levels, each from fine to coarse; one chain where all levels nest.

    Raises:
        DataError: a class lies in two groups of a level.

    Example:
        >>> from kinfold.data.read import read_table
        >>> columns = {"path": ["a", "b", "c"], "label": [1, 2, 3], "label.body": ["SUV", "SUV", "van"], "label.make": ["A", "B", "B"]}
        >>> chains_of(read_table(columns))
        (('body',), ('make',))
    """
    return _chains(_group_of_class(table, tuple(table.levels)))


def with_hierarchy(table: Table, hierarchy: Hierarchy) -> Table:
    """Return the table with a hierarchy's levels as columns; a level of the same name is replaced, others stay.

    Classes are matched by name; a whole number and the same number as text match where the hierarchy has only one of them.

    Args:
        table: whose classes all are in the hierarchy.
        hierarchy: may hold other classes as well.

    Raises:
        DataError: classes of the table are not in the hierarchy.

    Example:
        >>> from kinfold.data.read import read_table
        >>> table = read_table({"path": ["a", "b", "c"], "label": ["wren", "owl", "wren"]})
        >>> birds = hierarchy_from_groups(["owl", "gull", "wren"], {"order": ["night", "shore", "song"]})
        >>> with_hierarchy(table, birds).levels
        {'order': ('song', 'night', 'song')}
    """
    columns = hierarchy.restricted(_as_written(table.classes, hierarchy.classes)).columns()
    rows = table.class_index.tolist()
    levels = {**table.levels, **{name: tuple(groups[row] for row in rows) for name, groups in columns.items()}}
    note = "levels of a hierarchy: " + ", ".join(f"`{name}`" for name in columns)
    return replace(table, levels=levels, notes=(*table.notes, note))


def _named(table: Table, levels: str | Sequence[str] | None) -> tuple[str, ...]:
    if not table.levels:
        raise ConfigError(
            "the table has no coarser level: give it columns such as `label.family`, or put a taxonomy on it "
            "(`with_hierarchy`, or `data.taxonomy`)."
        )
    if levels is None:
        return tuple(table.levels)
    names = (levels,) if isinstance(levels, str) else tuple(levels)
    for name in names:
        if name not in table.levels:
            raise ConfigError(f"the table has no level {name!r}; {did_you_mean(name, table.levels)}")
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"levels = {list(names)}: name at least one level, and each once. Known: {', '.join(table.levels)}.")
    return names


def _group_of_class(table: Table, levels: Iterable[str]) -> dict[str, tuple[Name, ...]]:
    """Return the group of each class, in the order of `table.classes`, by level."""
    found = {}
    for level in levels:
        group_of: dict[Name, Name] = {}
        for name, group in zip(table.label, table.levels[level], strict=True):
            if group_of.setdefault(name, group) != group:
                raise DataError(
                    f"class {name!r} belongs to two groups of level `{level}`: {group_of[name]!r} and {group!r}. Each class must have "
                    "one group; correct the rows or drop the level."
                )
        found[level] = tuple(group_of[name] for name in table.classes)
    return found


def _chains(groups: Mapping[str, tuple[Name, ...]]) -> tuple[tuple[str, ...], ...]:
    """Return the chains that no further level fits into."""
    codes = {name: dense_codes(column) for name, column in groups.items()}
    names = sorted(groups, key=lambda name: -len(set(groups[name])))  # stable: equal groupings keep their order
    above = {fine: [coarse for coarse in names[i + 1 :] if nests(codes[fine], codes[coarse])] for i, fine in enumerate(names)}
    below_all = set(names).difference(*above.values())

    def upwards(name: str) -> list[tuple[str, ...]]:
        # Only the next step up: what can be reached through a level in between belongs to a longer chain.
        steps = set(above[name]).difference(*(above[step] for step in above[name]))
        return [(name, *rest) for step in above[name] if step in steps for rest in upwards(step)] or [(name,)]

    return tuple(chain for name in names if name in below_all for chain in upwards(name))


def _as_written(classes: Sequence[Name], known: Sequence[Name]) -> tuple[Name, ...]:
    """Return each class as the hierarchy writes it: files and folders disagree on whether 12 is a number or text."""
    by_text = {str(name): name for name in known}
    if len(by_text) < len(known):
        return tuple(classes)
    found = tuple(by_text.get(str(name), name) for name in classes)
    return found if len(set(found)) == len(found) else tuple(classes)
