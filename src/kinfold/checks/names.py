"""Names of classes that a person would take for one: other case, other spaces, another form of the same characters."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from kinfold.checks.finding import Finding, places
from kinfold.checks.wording import counted, shown
from kinfold.data.levels import Name, sorted_names
from kinfold.data.table import SPLITS, Table

# A run of what separates words. Before a number, after another one or at the beginning, only spaces in it are made one: 1.5 is not
# 1-5, and -1 is not 1.
RUN = re.compile(r"[\s_.,;:‐–—-]+")
SPACES = re.compile(r"[\s_]+")
APOSTROPHES = "'’ʼ`´"
LONE_LETTER = re.compile(r"(?<![^\W\d_])[^\W\d_](?![^\W\d_])")


def name_findings(table: Table) -> list[Finding]:
    """Find classes, and groups of each level, whose names look alike.

    Returns:
        `look_alike_names`: error if one of the names is trained on and another evaluated on, since the class is then no unseen one;
        else warning. `look_alike_groups` (note): the same for a level. One finding per set of names.
    """
    findings = []
    for names in look_alikes(table.label):
        rows = [row for row, label in enumerate(table.label) if label in names]
        is_leak = _is_leak(table, rows)
        leak = "; one is trained on and another evaluated on, so the class is no unseen one" if is_leak else ""
        findings.append(
            Finding(
                "look_alike_names",
                "error" if is_leak else "warning",
                f"{len(names)} classes have names that look alike: {_named(table, table.label, names)}{leak}",
                "if they mean one class, give them one name; if not, names that differ more save the reader from mistakes",
                **places(table, rows),
            )
        )
    for level, values in table.levels.items():
        for names in look_alikes(values):
            findings.append(
                Finding(
                    "look_alike_groups",
                    "note",
                    f"{len(names)} groups of level `{level}` have names that look alike: {_named(table, values, names)}",
                    "if they mean one group, give them one name",
                    **places(table, [row for row, value in enumerate(values) if value in names]),
                )
            )
    return findings


def look_alikes(names: Sequence[Name]) -> list[tuple[Name, ...]]:
    """Return the sets of distinct names that differ only by case, by what separates words, or by the form of their characters.

    Characters are compared in Unicode's form NFKC, which makes full-width letters, ligatures and composed accents one; characters
    without width and apostrophes count as nothing. Names of a single letter or sign, and names that differ by the case of lone
    letters alone (`Latin a` and `Latin A`), are kept apart: alphabets are labelled so.

    Example:
        >>> look_alikes(["barn owl", "Barn_Owl", "Barn  owl ", "owl 1", "owl 11", 7, 8])
        [('Barn  owl ', 'Barn_Owl', 'barn owl')]
    """
    alike: dict[str, list[Name]] = {}
    for name in sorted_names(names):
        alike.setdefault(_key(name), []).append(name)
    return [tuple(group) for group in alike.values() if len(group) > 1 and not _only_lone_letters_differ(group)]


def _key(name: Name) -> str:
    own = unicodedata.normalize("NFC", _visible(name)).strip()
    spaced = _spaced(name)
    is_one_sign = not spaced or (len(own) == 1 and not own.isdigit())
    return own if is_one_sign else spaced.casefold()


def _visible(name: Name) -> str:
    """Return the name without characters that have no width."""
    return "".join(letter for letter in str(name) if unicodedata.category(letter) != "Cf")


def _spaced(name: Name) -> str:
    """Return the visible name in NFKC, without apostrophes, with one space for every run of separators."""
    text = "".join(letter for letter in _visible(name) if letter not in APOSTROPHES)
    return RUN.sub(_space, unicodedata.normalize("NFKC", text)).strip()


def _space(run: re.Match[str]) -> str:
    before, after = run.string[: run.start()][-1:], run.string[run.end() :][:1]
    return SPACES.sub(" ", run[0]) if after.isdigit() and (before.isdigit() or not before) else " "


def _only_lone_letters_differ(names: Sequence[Name]) -> bool:
    exact = {_spaced(name) for name in names}
    lowered = {LONE_LETTER.sub(lambda letter: letter[0].casefold(), text) for text in exact}
    return len(exact) == len(names) and len(lowered) == 1


def _is_leak(table: Table, rows: Sequence[int]) -> bool:
    """Return whether one name is trained on and another is evaluated on."""
    trained = {table.label[row] for row in rows if table.split[row] == "train"}
    evaluated = {table.label[row] for row in rows if table.split[row] != "train"}
    return bool(trained) and bool(evaluated - trained)


def _named(table: Table, values: Sequence[Name], names: Sequence[Name]) -> str:
    return ", ".join(f"{shown(name)} ({'; '.join(_counts(table, values, name))})" for name in names)


def _counts(table: Table, values: Sequence[Name], name: Name) -> Iterator[str]:
    for split in SPLITS:
        n = sum(value == name and where == split for value, where in zip(values, table.split, strict=True))
        if n:
            yield f"{counted(n, 'image')} in {split}"
