"""How results are printed: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table


def say(text: str) -> None:
    """Print chatter to stderr."""
    print(text, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print a result as one JSON object."""
    print(json.dumps(value))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", numbers: bool = True) -> None:
    """Print a result as a table; numbers stand to the right of the first column."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number and numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, width=None if sys.stdout.isatty() else 160).print(table)


def percent(value: float) -> str:
    """Return a share in percent with one decimal.

    Example:
        >>> percent(0.876)
        '87.6'
    """
    return f"{100 * value:.1f}"
