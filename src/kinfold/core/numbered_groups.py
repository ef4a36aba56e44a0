"""Groups that are only numbers → a hierarchy whose groups say whom they hold."""

from collections.abc import Sequence

from kinfold.core.hierarchy import Hierarchy, Name, hierarchy_from_groups
from kinfold.errors import DataError

SHOWN = 2
LONGEST = 24  # characters of a class's name within a group's


def hierarchy_from_codes(classes: Sequence[Name], codes: Sequence[Sequence[int]]) -> Hierarchy:
    """Return the hierarchy of classes whose group number on each level is known.

    Levels are called `level_1` (the finest), `level_2`, …; a group is called by its number and its first two classes, as in
    `7 (oak, elm, +4)`: numbers stay the same when groups come and go. Numbers that no class has are no groups. Names of over 24
    characters are cut there.

    Args:
        classes: names.
        codes: for each level, the finest first, the group number of each class.

    Raises:
        DataError: there is no level, a level has another number of classes, or a group is split by a coarser level.

    Example:
        >>> tree = hierarchy_from_codes(["oak", "elm", "fly", "ash"], [[3, 3, 0, 3], [1, 1, 1, 1]])
        >>> tree.groups_of("level_1"), tree.levels[1].groups
        (('3 (oak, elm, +1)', '3 (oak, elm, +1)', '0 (fly)', '3 (oak, elm, +1)'), ('1 (oak, elm, +2)',))
    """
    for number, code in enumerate(codes, start=1):
        if len(code) != len(classes):
            raise DataError(f"level_{number} groups {len(code)} classes, but there are {len(classes)}: give one number for each.")
    return hierarchy_from_groups(classes, {f"level_{i}": _names(classes, code) for i, code in enumerate(codes, start=1)})


def _names(classes: Sequence[Name], code: Sequence[int]) -> list[str]:
    members: dict[int, list[Name]] = {}
    for name, number in zip(classes, code, strict=True):
        members.setdefault(number, []).append(name)
    title = {number: f"{number} ({_some(names)})" for number, names in members.items()}
    return [title[number] for number in code]


def _some(names: Sequence[Name]) -> str:
    shown = [text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…" for text in map(str, names[:SHOWN])]
    return ", ".join(shown if len(names) <= SHOWN else [*shown, f"+{len(names) - SHOWN}"])
