"""`kinfold check`: what is wrong with a table or a configuration, before anything is trained."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from kinfold.build import build_table
from kinfold.checks.finding import Finding, in_order
from kinfold.checks.images import Progress
from kinfold.checks.report import as_record, as_text
from kinfold.checks.table import check_table
from kinfold.commands.output import print_json, say
from kinfold.config import Config, read_config
from kinfold.data.read import read_table
from kinfold.data.table import Table
from kinfold.errors import ConfigError


def check_command(target: str, overrides: Sequence[str], *, workers: int, strict: bool, as_json: bool) -> int:
    """Print what is found, and return the exit code: 1 if there is an error, or with `strict` a warning; else 0."""
    if Path(target).suffix.lower() == ".toml":
        findings = _checked_configuration(read_config(target, overrides), workers)
    elif overrides:
        raise ConfigError(
            f"{target} is no .toml file, so the settings {' '.join(overrides)} have nothing to change: leave them out."
        )
    else:
        findings = _checked(read_table(target), workers)
    findings = in_order(findings)
    if as_json:
        print_json(as_record(findings, target=target))
    else:
        print(as_text(findings, title=target))
    bad = {"error", "warning"} if strict else {"error"}
    return int(any(finding.severity in bad for finding in findings))


def _checked_configuration(config: Config, workers: int) -> list[Finding]:
    table = build_table(config.data)
    findings = _checked(table, workers)
    from kinfold.checks.config import check_config

    return [*findings, *check_config(config, table=table)]


def _checked(table: Table, workers: int) -> list[Finding]:
    say(f"looking at {len(table):,} images of {table.n_classes:,} classes")
    with _bar() as progress:
        return check_table(table, workers=workers, progress=progress)


@contextmanager
def _bar() -> Iterator[Progress | None]:
    """Show a bar on a terminal, and nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = TextColumn("images"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn()
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("images", total=None)
        yield lambda done, of: bar.update(task, completed=done, total=of)
