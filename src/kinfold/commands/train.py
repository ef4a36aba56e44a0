"""`kinfold train`: a configuration → a run folder with a finished model and its scores."""

from collections.abc import Sequence
from pathlib import Path

from kinfold.build import build_embedder, build_objective, build_table
from kinfold.commands.evaluate import evaluate_run
from kinfold.commands.measured import show
from kinfold.commands.output import print_json, say
from kinfold.config import Config, read_config
from kinfold.console import ConsoleWatch
from kinfold.evaluation.memory import bytes_of
from kinfold.evaluation.metric_names import metrics_of
from kinfold.evaluation.spaces import function_of
from kinfold.train import fit


def train_command(file: Path, overrides: Sequence[str], *, as_json: bool) -> None:
    """Train, or go on; then measure the finished model once."""
    config = read_config(file, overrides)
    _check_evaluation(config)
    table = build_table(config.data)
    say(table.summary())
    embedder = build_embedder(config)
    train_rows = table.of_split("train")
    objective = build_objective(config.objective, n_classes=train_rows.n_classes, dim=embedder.dim, seed=config.seed)
    say(f"run folder: {config.run}")
    with ConsoleWatch(config.train.epochs) as watch:
        trained = fit(
            table, embedder, objective, run=config.run, recipe=config.recipe, watch=watch, config=config.model_dump(mode="json")
        )
    split = config.evaluation.split
    if not config.evaluation.after_training or not len(table.of_split(split)):
        print_json({"run": str(trained.run.folder), "steps": trained.progress.step}) if as_json else print(trained.run.folder)
        return
    scores = evaluate_run(trained.run, split, _scoring(config))
    show(scores, title=f"{config.run}, {split}", as_json=as_json, facts={"run": config.run})


def _scoring(config: Config) -> dict:
    return config.evaluation.model_dump(include={"ks", "similarity", "metrics", "memory"})


def _check_evaluation(config: Config) -> None:
    """Find a misspelt metric before training, not after."""
    metrics_of(config.evaluation.metrics, config.evaluation.ks)
    function_of(config.evaluation.similarity)
    bytes_of(config.evaluation.memory)
