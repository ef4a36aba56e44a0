"""A finding: one thing that a check has to say, how bad it is, and what to do about it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypedDict, get_args

from kinfold.data.table import Table
from kinfold.errors import ConfigError, ShapeError

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


@dataclass(frozen=True)
class Finding:
    """One thing that a check found.

    Attributes:
        code: what kind of finding it is, the same in every version, such as `two_labels`.
        severity: `error` (results will be wrong, or nothing will run), `warning` (probably not meant), `note` (good to know).
        message: what was found, with the values.
        remedy: what to do about it.
        rows: item numbers (`table.item`) of all rows concerned; empty if it is not about rows.
        paths: the images of those rows, in the same order.

    Raises:
        ConfigError: an unknown severity.
        ShapeError: there is not one path for every row.

    Example:
        >>> Finding("two_labels", "error", "2 images are equal", "keep one label", rows=(3, 8), paths=("a.jpg", "b.jpg")).rows
        (3, 8)
    """

    code: str
    severity: Severity
    message: str
    remedy: str
    rows: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an unknown severity, and rows without their paths."""
        if self.severity not in SEVERITIES:
            raise ConfigError(f"severity {self.severity!r} is not known: it must be one of {', '.join(SEVERITIES)}.")
        if len(self.rows) != len(self.paths):
            raise ShapeError(f"{len(self.rows)} rows and {len(self.paths)} paths in `{self.code}`: give one path a row.")

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values, ready for JSON."""
        return asdict(self) | {"rows": list(self.rows), "paths": list(self.paths)}


class Places(TypedDict):
    """The fields of a finding that say which rows it is about."""

    rows: tuple[int, ...]
    paths: tuple[str, ...]


def places(table: Table, rows: Sequence[int]) -> Places:
    """Return the item numbers and paths of some rows of a table, as a finding's fields.

    Example:
        >>> from kinfold.data.read import read_table
        >>> places(read_table({"path": ["a", "b", "c"], "label": [1, 1, 2]}), [2])
        {'rows': (2,), 'paths': ('c',)}
    """
    return {"rows": tuple(int(table.item[row]) for row in rows), "paths": tuple(table.path[row] for row in rows)}


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with errors first, then warnings, then notes; otherwise in the order given."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
