"""Findings as people read them, and as programs do."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from kinfold.checks.finding import SEVERITIES, Finding
from kinfold.checks.wording import counted

ROWS_SHOWN = 5
FINDINGS_SHOWN = {"error": 20, "warning": 5, "note": 5}
"""Of each kind."""


def as_text(findings: Sequence[Finding], *, title: str) -> str:
    """Return findings for people: errors first, of each kind the first few, of each the first 5 rows, and a line that sums up.

    Example:
        >>> print(as_text([Finding("one_split", "note", "every row is train", "hold out classes")], title="table.csv"))
        note  one_split: every row is train
              → hold out classes
        <BLANKLINE>
        table.csv: 0 errors, 0 warnings, 1 note
    """
    lines: list[str] = []
    for severity in SEVERITIES:
        of_code: dict[str, list[Finding]] = {}
        for finding in findings:
            if finding.severity == severity:
                of_code.setdefault(finding.code, []).append(finding)
        for code, alike in of_code.items():
            limit = FINDINGS_SHOWN[severity]
            for finding in alike[:limit]:
                lines += [*_lines(finding), ""]
            if len(alike) > limit:
                lines += [f"{severity}  {code}: {len(alike) - limit:,} more of this kind (--json lists all)", ""]
    return "\n".join([*lines, f"{title}: {summary(findings)}"])


def summary(findings: Iterable[Finding]) -> str:
    """Return how many findings there are of each severity.

    Example:
        >>> summary([])
        'nothing found'
    """
    n = Counter(finding.severity for finding in findings)
    return ", ".join(counted(n[severity], severity) for severity in SEVERITIES) if n else "nothing found"


def as_record(findings: Sequence[Finding], *, target: str) -> dict[str, Any]:
    """Return findings for programs: plain values, with all rows.

    Example:
        >>> as_record([], target="table.csv")
        {'target': 'table.csv', 'n_errors': 0, 'n_warnings': 0, 'n_notes': 0, 'findings': []}
    """
    n = Counter(finding.severity for finding in findings)
    counts = {f"n_{severity}s": n[severity] for severity in SEVERITIES}
    return {"target": target, **counts, "findings": [finding.to_dict() for finding in findings]}


def _lines(finding: Finding) -> list[str]:
    margin = " " * (len(finding.severity) + 2)
    lines = [f"{finding.severity}  {finding.code}: {finding.message}"]
    for row, path in list(zip(finding.rows, finding.paths, strict=True))[:ROWS_SHOWN]:
        lines.append(f"{margin}row {row}: {path}")
    if len(finding.rows) > ROWS_SHOWN:
        lines.append(f"{margin}and {len(finding.rows) - ROWS_SHOWN:,} more rows")
    return [*lines, f"{margin}→ {finding.remedy}"]
