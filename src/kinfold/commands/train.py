"""`kinfold train`: a configuration → a run folder with a finished model and its scores."""

from collections.abc import Sequence
from pathlib import Path

from kinfold.build import build_table
from kinfold.commands.agreement import print_agreement
from kinfold.commands.measured import show
from kinfold.commands.output import print_json, say
from kinfold.config import read_config
from kinfold.console import ConsoleWatch
from kinfold.data.table import Table
from kinfold.engine.run import Run
from kinfold.evaluation.agreement import LevelAgreement
from kinfold.experiment import check_evaluation, run_experiment
from kinfold.learned_groups import report_learned


def train_command(file: Path, overrides: Sequence[str], *, as_json: bool) -> None:
    """Train, or go on; then measure the finished model once, and how its groups agree with given ones."""
    config = read_config(file, overrides)
    check_evaluation(config.evaluation)
    table = build_table(config.data)
    say(table.summary())
    say(f"run folder: {config.run}")
    with ConsoleWatch(config.train.epochs) as watch:
        done = run_experiment(config, table=table, watch=watch, tell=say)
    learned = _reported(done.run, table)
    facts = {"hierarchy": [row.to_dict() for row in learned]} if learned else {}
    if done.scores:
        title = f"{config.run}, {config.evaluation.split}"
        show(done.scores, title=title, as_json=as_json, facts={"run": config.run, **facts})
    elif as_json:
        print_json({"run": str(done.run.folder), "steps": done.n_steps, **facts})
    else:
        print(done.run.folder)
    if learned and not as_json:
        print_agreement(learned, title="\nthe run's groups of training classes with the levels of the table")


def _reported(run: Run, table: Table) -> list[LevelAgreement]:
    """Compare what was learned with the given levels, if both are there, and keep it beside the scores."""
    rows = report_learned(run, table)
    if rows:
        run.write_metrics("hierarchy", [row.to_dict() for row in rows])
    return rows
