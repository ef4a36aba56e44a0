"""Coarser levels of a table: each class in one group, and levels that nest or cross."""

from itertools import combinations

from kinfold.checks.finding import Finding, places
from kinfold.checks.wording import counted, listed, shown
from kinfold.data.levels import Name
from kinfold.data.table import Table


def level_findings(table: Table) -> list[Finding]:
    """Look at the coarser levels.

    Returns:
        `two_groups` (error): a class lies in several groups of a level. `crossing_levels` (note): neither of two levels nests in the
        other. `idle_level` (note): a level with a single group, or with one for each class.
    """
    findings = [finding for level in table.levels for finding in (*_two_groups(table, level), *_idle(table, level))]
    for one, other in combinations(table.levels, 2):
        if not table.nests(one, other) and not table.nests(other, one):
            findings.append(
                Finding(
                    "crossing_levels",
                    "note",
                    f"levels `{one}` ({counted(len(table.level_names(one)), 'group')}) and `{other}` "
                    f"({counted(len(table.level_names(other)), 'group')}) cross: neither nests in the other",
                    "nothing to do if that is meant; each level is then measured for itself",
                )
            )
    return findings


def _two_groups(table: Table, level: str) -> list[Finding]:
    groups: dict[Name, dict[Name, None]] = {}
    for label, group in zip(table.label, table.levels[level], strict=True):
        groups.setdefault(label, {})[group] = None
    torn = {label: list(found) for label, found in groups.items() if len(found) > 1}
    if not torn:
        return []
    label, found = next(iter(torn.items()))
    return [
        Finding(
            "two_groups",
            "error",
            f"{counted(len(torn), 'class lies', 'classes lie')} in several groups of level `{level}`, as {shown(label)} does: "
            f"{listed(found)}",
            "give every class one group, or leave the level out",
            **places(table, [row for row, name in enumerate(table.label) if name in torn]),
        )
    ]


def _idle(table: Table, level: str) -> list[Finding]:
    n = len(table.level_names(level))
    if n == 1:
        message = f"level `{level}` has a single group: everything is right on it"
    elif n == table.n_classes == len(set(zip(table.label, table.levels[level], strict=True))):
        message = f"level `{level}` has one group for each class: it says what the labels say"
    else:
        return []
    return [Finding("idle_level", "note", message, "leave the level out")]
