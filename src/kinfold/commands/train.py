"""`kinfold train`: a configuration → a run folder with a finished model and its scores."""

from collections.abc import Sequence
from pathlib import Path

from kinfold.build import build_table
from kinfold.commands.measured import show
from kinfold.commands.output import print_json, say
from kinfold.config import read_config
from kinfold.console import ConsoleWatch
from kinfold.experiment import check_evaluation, run_experiment


def train_command(file: Path, overrides: Sequence[str], *, as_json: bool) -> None:
    """Train, or go on; then measure the finished model once."""
    config = read_config(file, overrides)
    check_evaluation(config.evaluation)
    table = build_table(config.data)
    say(table.summary())
    say(f"run folder: {config.run}")
    with ConsoleWatch(config.train.epochs) as watch:
        done = run_experiment(config, table=table, watch=watch, tell=say)
    if done.scores:
        show(done.scores, title=f"{config.run}, {config.evaluation.split}", as_json=as_json, facts={"run": config.run})
    elif as_json:
        print_json({"run": str(done.run.folder), "steps": done.n_steps})
    else:
        print(done.run.folder)
