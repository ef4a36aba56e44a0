"""A hierarchy of classes: groups of classes, groups of those groups, from fine to coarse."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import cast

import torch
from jaxtyping import Int
from torch import Tensor

from kinfold.errors import ConfigError, DataError, did_you_mean

Name = str | int
"""A class or a group: text, or a whole number."""


@dataclass(frozen=True)
class Level:
    """One level of a hierarchy.

    Attributes:
        name: such as `family`.
        groups: names of its groups.
        parent: for each group of the level below (for each class, on the finest level) the number of its group here.
    """

    name: str
    groups: tuple[Name, ...]
    parent: tuple[int, ...]


@dataclass(frozen=True)
class Hierarchy:
    """Classes and the levels above them; every class lies in one group of each level, and above the last level is the root.

    Made by `hierarchy_from_groups`, `hierarchy_from_parents`, `hierarchy_from_paths`, `hierarchy_of` a table, or read from a file.

    Attributes:
        classes: names of the classes; a class's number is its place.
        levels: from fine to coarse; at least one.

    Raises:
        DataError: a name comes twice, a group is empty, or parents do not fit the level below.

    Example:
        >>> birds = hierarchy_from_groups(["wren", "owl", "gull"], {"family": ["Wren", "Owl", "Gull"], "order": ["song", "Owl", "shore"]})
        >>> birds.names, birds.sizes
        (('family', 'order'), (3, 3))
    """

    classes: tuple[Name, ...]
    levels: tuple[Level, ...]

    def __post_init__(self) -> None:
        """Refuse what is no hierarchy."""
        if not self.classes or not self.levels:
            raise DataError(f"a hierarchy of {len(self.classes)} classes and {len(self.levels)} levels: it needs one of each.")
        _check_distinct("the classes", self.classes)
        _check_distinct("the levels", ("label", *self.names))
        if not all(name.strip() for name in self.names):
            raise DataError(f"the levels of a hierarchy are {list(self.names)}: each needs a name, such as `family`.")
        for below, level in pairwise((Level("label", self.classes, ()), *self.levels)):
            _check_distinct(f"the groups of level `{level.name}`", level.groups)
            if len(level.parent) != len(below.groups):
                raise DataError(
                    f"level `{level.name}` has {len(level.parent)} parents for {len(below.groups)} groups of `{below.name}`: "
                    "each needs exactly one."
                )
            if set(level.parent) != set(range(len(level.groups))):
                raise DataError(f"level `{level.name}`: parents must count from 0 to {len(level.groups) - 1}, each group used.")

    def __repr__(self) -> str:
        counted = ", ".join(f"{level.name} {len(level.groups):,}" for level in self.levels)
        return f"Hierarchy({len(self.classes):,} classes; {counted})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the levels, fine to coarse."""
        return tuple(level.name for level in self.levels)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of groups of each level."""
        return tuple(len(level.groups) for level in self.levels)

    @cached_property
    def codes(self) -> Int[Tensor, "levels classes"]:
        """The group number of each class on each level."""
        rows, code = list[Tensor](), torch.arange(len(self.classes))
        for level in self.levels:
            code = torch.tensor(level.parent)[code]
            rows.append(code)
        return torch.stack(rows)

    def place_of(self, level: str) -> int:
        """Return the place of a level, 0 for the finest.

        Raises:
            ConfigError: there is none of that name.
        """
        if level not in self.names:
            raise ConfigError(f"the hierarchy has no level {level!r}: {did_you_mean(level, self.names)}")
        return self.names.index(level)

    def groups_of(self, level: str) -> tuple[Name, ...]:
        """Return the name of each class's group on a level."""
        place = self.place_of(level)
        return tuple(self.levels[place].groups[code] for code in cast("list[int]", self.codes[place].tolist()))  # pyright: ignore[reportUnknownMemberType]

    def members(self, level: str) -> dict[Name, tuple[Name, ...]]:
        """Return the classes of each group of a level."""
        found: dict[Name, list[Name]] = {group: [] for group in self.levels[self.place_of(level)].groups}
        for name, group in zip(self.classes, self.groups_of(level), strict=True):
            found[group].append(name)
        return {group: tuple(names) for group, names in found.items()}

    def columns(self) -> dict[str, tuple[Name, ...]]:
        """Return the name of each class's group, by level."""
        return {name: self.groups_of(name) for name in self.names}

    def restricted(self, classes: Sequence[Name]) -> "Hierarchy":
        """Return the hierarchy of some of the classes, in the order given; groups without any of them are left out.

        Raises:
            DataError: a class is not in the hierarchy.
        """
        place = {name: i for i, name in enumerate(self.classes)}
        missing = [name for name in classes if name not in place]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(classes)} classes are not in the hierarchy: {', '.join(map(repr, missing[:5]))}"
                f"{', …' if len(missing) > 5 else ''}. Add them, or leave their images out."
            )
        rows = [place[name] for name in classes]
        return hierarchy_from_groups(classes, {name: [groups[row] for row in rows] for name, groups in self.columns().items()})

    def lca_height(self, a: Int[Tensor, " n"], b: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """Return how far up the lowest common ancestor of class a_i and class b_i lies.

            height(a, b) = [a ≠ b] + Σ over levels of [group of a ≠ group of b]

        0: the same class; 1: one group of the finest level; `len(levels)` + 1: nothing but the root.

        Args:
            a: class numbers.
            b: class numbers, as many.

        Example:
            >>> tree = hierarchy_from_groups(["oak", "elm", "fly"], {"kind": ["tree", "tree", "insect"]})
            >>> tree.lca_height(torch.tensor([0, 0, 0]), torch.tensor([0, 1, 2]))
            tensor([0, 1, 2])
        """
        return (a != b).long() + (self.codes[:, a] != self.codes[:, b]).sum(dim=0)


def hierarchy_from_groups(classes: Sequence[Name], groups: Mapping[str, Sequence[Name]]) -> Hierarchy:
    """Return the hierarchy of classes whose group on each level is known.

    Args:
        classes: names, each once.
        groups: level → the group of each class; in any order: levels are sorted from fine to coarse.

    Raises:
        DataError: levels that cross (a group lies in two groups of a coarser level), or columns of another length.

    Example:
        >>> tree = hierarchy_from_groups(["oak", "elm", "fly"], {"kind": ["tree", "tree", "insect"]})
        >>> tree.members("kind")
        {'tree': ('oak', 'elm'), 'insect': ('fly',)}
    """
    for name, column in groups.items():
        if len(column) != len(classes):
            raise DataError(f"level `{name}` names {len(column)} groups for {len(classes)} classes: give one for each class.")
    names = sorted(groups, key=lambda name: -len(set(groups[name])))  # stable: equal levels keep their order
    levels, below = list[Level](), ("label", tuple(classes))
    _check_distinct("the classes", below[1])
    for name in names:
        levels.append(_level(name, groups[name], below))
        below = name, tuple(groups[name])
    return Hierarchy(tuple(classes), tuple(levels))


def _level(name: str, column: Sequence[Name], below: tuple[str, tuple[Name, ...]]) -> Level:
    parent = dict[Name, Name]()
    for child, group in zip(below[1], column, strict=True):
        if parent.setdefault(child, group) != group:
            raise DataError(
                f"levels `{below[0]}` and `{name}` cross: {child!r} lies in both {parent[child]!r} and {group!r}. Groupings that cross "
                "are separate hierarchies: name the levels of one of them."
            )
    place = {group: i for i, group in enumerate(dict.fromkeys(parent.values()))}
    return Level(name, tuple(place), tuple(place[group] for group in parent.values()))


def _check_distinct(what: str, names: Sequence[Name]) -> None:
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(f"{what} of a hierarchy must be distinct: {twice!r} comes twice.")
