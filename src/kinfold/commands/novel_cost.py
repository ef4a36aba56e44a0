"""`kinfold novel cost`: what methods with made-up classes cost beside the loss alone, on one configuration."""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from kinfold.build import build_embedder, build_table
from kinfold.build_objective import build_objective
from kinfold.checks.memory import StepMemory, bytes_of_tensors, measured_memory
from kinfold.checks.rehearsal import Rehearsal, rehearse
from kinfold.checks.sizes import weights_of
from kinfold.checks.speed import load_some
from kinfold.checks.units import as_size
from kinfold.commands.output import print_json, print_table, say
from kinfold.config import Config, read_config
from kinfold.data.table import Table
from kinfold.errors import DataError
from kinfold.objective_settings import ObjectiveSettings
from kinfold.records import Batch
from kinfold.training_batches import training_batches

OF_METHODS = (
    *("pretraining_epochs", "novel_ratio", "max_novel", "existing", "generated_ratio", "divergence", "divergence_weight"),
    *("noise_dim", "hidden_dim", "synthesis_ratio", "concentration", "n_points", "per", "host"),
)
"""Keys of the objective that belong to a method and not to its host."""

GROUPS = ("generator", "novel_proxies")
COLUMNS = [
    *("", "ms a step", "× base", "numbers that train", "of them added", "weights, gradients, moments"),
    *("kept for backward", "peak of a step"),
]


def cost_novel_command(file: Path, overrides: Sequence[str], *, rounds: int, as_json: bool) -> None:
    """Print time of a step, numbers that train and memory of each method, as multiples of the loss alone."""
    config = read_config(file, overrides)
    train = build_table(config.data).of_split("train")
    if train.n_classes < 2:
        raise DataError(f"the training split has {train.n_classes} class(es): at least 2 are needed.")
    candidates = {name: _rehearsed(each, train) for name, each in _configs(config).items()}
    batch = _batch(config, train)
    say(f"timing {rounds} steps of each in turn, {len(batch.label)} images a batch, {torch.get_num_threads()} thread(s)")
    memory = {name: _first_step(rehearsal, batch) for name, rehearsal in candidates.items()}
    seconds = _in_turn(candidates, batch, rounds)
    base = next(iter(candidates))
    rows = {name: _row(rehearsal, seconds, name, base, memory[name]) for name, rehearsal in candidates.items()}
    if as_json:
        print_json({"config": str(file), "batch_size": len(batch.label), "rounds": rounds, "rows": rows, "seconds": seconds})
        return
    print_table(*_table(rows))
    print(
        "Time: median, and median of the ratios within a round. Nothing is added to the saved model, nor to embedding an image."
    )


def _configs(config: Config) -> dict[str, Config]:
    """Return the configuration of each method over the same host."""
    kind = config.objective.kind
    host = None if kind == "proxy" else kind
    plain = config.objective.model_copy(update={**dict.fromkeys(OF_METHODS), "divergence_options": {}, "name": kind})
    own = {key: getattr(config.objective, key) for key in (*OF_METHODS, "divergence_options")} | {"host": host}
    mixing = ("synthesis_ratio", "concentration")
    of_mixing = {key: own[key] for key in mixing}
    if config.objective.name != "l2a_nc":
        own = {"host": host}
    else:
        own |= dict.fromkeys((*mixing, "n_points", "per"))
    nc = plain.model_copy(update={**own, "name": "l2a_nc"})
    epochs = max(1, config.train.epochs)
    objectives: dict[str, ObjectiveSettings] = {
        "base": plain,
        "+ Proxy Synthesis": plain.model_copy(update={**of_mixing, "name": "proxy_synthesis", "host": host}),
        "+ L2A-NC, pretraining": nc.model_copy(update={"pretraining_epochs": epochs}),
        "+ L2A-NC, joint": nc.model_copy(update={"pretraining_epochs": 0}),
    }
    return {name: _with(config, objective) for name, objective in objectives.items()}


def _with(config: Config, objective: ObjectiveSettings) -> Config:
    optimizer = config.optimizer
    if objective.name != "l2a_nc":
        groups = {name: group for name, group in optimizer.groups.items() if name not in GROUPS}
        optimizer = optimizer.model_copy(update={"groups": groups})
    return config.model_copy(update={"objective": objective, "stage": {}, "optimizer": optimizer})


def _rehearsed(config: Config, train: Table) -> Rehearsal:
    embedder = build_embedder(config)
    how = {"n_classes": train.n_classes, "dim": embedder.dim, "seed": config.seed, "train": train, "epochs": config.train.epochs}
    objective = build_objective(config.objective, **how)
    return rehearse(train, embedder, objective, config.recipe, n_batches=1)


def _batch(config: Config, train: Table) -> Batch:
    batches = training_batches(train, build_embedder(config), config.recipe)
    try:
        return load_some(batches.epoch(0), workers=config.batches.workers).batches[0]
    finally:
        batches.close()


def _first_step(rehearsal: Rehearsal, batch: Batch) -> StepMemory:
    """Make a step that warms up, and one whose memory is measured."""
    fed = rehearsal.fed(batch)
    rehearsal.step(fed)
    with measured_memory(rehearsal.device, weights_of(rehearsal.embedder, rehearsal.objective)) as memory:
        rehearsal.step(fed)
    return memory


def _in_turn(candidates: dict[str, Rehearsal], batch: Batch, rounds: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, rehearsal in candidates.items():
            fed = rehearsal.fed(batch)
            begin = time.perf_counter()
            rehearsal.step(fed)
            if rehearsal.device.type == "cuda":
                torch.cuda.synchronize(rehearsal.device)
            seconds[name].append(time.perf_counter() - begin)
    return seconds


def _table(rows: dict[str, dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return columns and cells; the last column only where it was measured."""
    n = len(COLUMNS) - any(row["peak_bytes"] is None for row in rows.values())
    return COLUMNS[:n], [_cells(name, row)[:n] for name, row in rows.items()]


def _cells(name: str, row: dict[str, Any]) -> list[str]:
    return [
        name,
        f"{1000 * row['seconds']:.1f}",
        f"{row['ratio']:.3f}",
        f"{row['parameters']:,}",
        f"{row['added']:,}",
        as_size(row["state_bytes"]),
        as_size(row["activation_bytes"]),
        as_size(row["peak_bytes"] or 0),
    ]


def _row(rehearsal: Rehearsal, seconds: dict[str, list[float]], name: str, base: str, memory: StepMemory) -> dict[str, Any]:
    optimizers = rehearsal.session.optimizers
    trained = [p for p in optimizers.parameters if p.requires_grad]
    added = [p for group in optimizers.groups if group.name in GROUPS for p in group.params]
    moments = [
        t
        for each in optimizers.torch_optimizers
        for state in each.state.values()
        for t in state.values()
        if isinstance(t, torch.Tensor)
    ]
    return {
        "seconds": median(seconds[name]),
        "ratio": median(one / other for one, other in zip(seconds[name], seconds[base], strict=True)),
        "parameters": sum(p.numel() for p in trained),
        "added": sum(p.numel() for p in added),
        "state_bytes": 2 * bytes_of_tensors(trained) + bytes_of_tensors(moments),
        "activation_bytes": memory.saved,
        # A process's rise says nothing here: the second candidate takes what the first one's step has freed.
        "peak_bytes": memory.rise if rehearsal.device.type == "cuda" else None,
    }
