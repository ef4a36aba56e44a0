"""How agreement of groupings is printed."""

from collections.abc import Sequence

from kinfold.commands.output import print_table
from kinfold.evaluation.agreement import LevelAgreement


def print_agreement(rows: Sequence[LevelAgreement], *, title: str) -> None:
    """Print a row for each pair of levels, and what the columns mean."""
    lines = [
        [
            f"{row.level} ({row.groups:,})",
            f"{row.other} ({row.other_groups:,})",
            *(f"{value:.3f}" for value in (row.agreement.ami, row.agreement.nmi, row.agreement.chance_mean)),
            f"{row.agreement.p_value:.2g}",
        ]
        for row in rows
    ]
    print_table(["level (groups)", "with (groups)", "AMI", "NMI", "NMI by chance", "p"], lines, title=title)
    found = rows[0].agreement
    print(
        f"{found.n:,} classes; AMI 0: no more than chance, 1: the same groups; p: share of {found.n_permutations:,} shuffled "
        "groupings that agree as well."
    )
