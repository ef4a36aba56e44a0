"""What generated classes add to a training step: whole steps with EfficientNet-Lite0, the objective alone, and the size of SOP.

Usage: python benchmarks/l2a_nc.py [--smoke] [--rounds 9] [--threads 2]
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import torch
from evaluation import resident, return_free_memory
from timing import in_turn, ratio
from torch import nn

import kinfold
from kinfold.allocator import keep_freed_memory
from kinfold.losses import proxy_anchor, proxy_nca
from kinfold.objectives import NovelClasses, Proxies, ProxySynthesis
from kinfold.objectives.base import Objective
from kinfold.records import Embedded

RESULT = Path(__file__).parent / "results" / "l2a_nc.json"
LOSSES = {"proxy_nca": proxy_nca, "proxy_anchor": proxy_anchor}


class Size(NamedTuple):
    """How large everything is."""

    n_classes: int = 100
    dim: int = 512
    batch_size: int = 128
    pixels: int = 128
    n_features: int = 1280


CUB, SOP = Size(), Size(n_classes=11_318)
TOY, TOY_SOP = Size(20, 16, 8, 32, 24), Size(60, 16, 8, 32, 24)


def objectives(size: Size, loss: str) -> dict[str, Objective]:
    """Return the loss alone and with each method; L2A-NC in both stages, 200 % novel classes, hidden width 128."""

    def base() -> Proxies:
        return Proxies(LOSSES[loss], size.n_classes, size.dim)

    return {
        "base": base(),
        "proxy_synthesis": ProxySynthesis(base()),
        "pretraining": NovelClasses(base(), pretraining_epochs=1),
        "joint": NovelClasses(base(), pretraining_epochs=0),
    }


def stepper(model: nn.Module, objective: Objective, x: torch.Tensor, label: torch.Tensor) -> Callable[[], None]:
    """Return what makes one update of model and objective: a forward pass, then each phase with its backward pass and step."""
    optimizer = torch.optim.AdamW([*model.parameters(), *objective.parameters()], lr=1e-4, fused=True)
    item, view = torch.arange(len(label)), torch.zeros(len(label), dtype=torch.long)

    def step() -> None:
        out = model(x)
        embedding = out[1] if isinstance(out, tuple) else out
        batch = Embedded(embedding, embedding, label, item, view)
        for phase in objective.phases:
            objective(batch, phase).total.backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


class Free(nn.Module):
    """Embeddings that are parameters: a step is the objective's alone."""

    def __init__(self, size: Size):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(size.batch_size, size.dim, generator=torch.Generator().manual_seed(4)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # noqa: ARG002 (there is nothing to embed)
        """Return them."""
        return self.embedding


def compared(size: Size, loss: str, model: Callable[[], nn.Module], x: torch.Tensor, n_rounds: int) -> dict[str, float]:
    """Compare whole steps."""
    label = torch.randint(size.n_classes, (size.batch_size,), generator=torch.Generator().manual_seed(1))
    candidates = {name: stepper(model(), each, x, label) for name, each in objectives(size, loss).items()}
    spent = in_turn(candidates, n_rounds)
    found = {f"{name}_ms": statistics.median(times) for name, times in spent.items()}
    return found | {f"{name}_over_base": ratio(spent, name, "base") for name in spent if name != "base"}


def added(size: Size) -> int:
    """Return how many numbers generator and novel proxies hold."""
    objective = objectives(size, "proxy_nca")["joint"]
    groups = {group.name: group.params for group in objective.parameter_groups()}
    return sum(p.numel() for name in ("generator", "novel_proxies") for p in groups[name])


def peak(name: str, size: Size, threads: int, send: Connection) -> None:
    """Send the megabytes by which this process rose over three head-only steps: weights, gradients, moments and the step itself.

    Not by `ru_maxrss`: a process inherits that of the one that started it.
    """
    keep_freed_memory()
    torch.set_num_threads(threads)
    x = torch.randn(size.batch_size, size.n_features)
    label = torch.randint(size.n_classes, (size.batch_size,))
    small = TOY._replace(n_features=size.n_features, dim=size.dim, batch_size=size.batch_size)
    warm = stepper(nn.Linear(size.n_features, size.dim), objectives(small, "proxy_nca")[name], x, label % small.n_classes)
    warm()  # loads what torch loads at the first step
    del warm
    return_free_memory()
    before = resident("VmRSS")
    step = stepper(nn.Linear(size.n_features, size.dim), objectives(size, "proxy_nca")[name], x, label)
    for _ in range(3):
        step()
    send.send(round((resident("VmHWM") - before) / 1e6, 1))


def peaks(size: Size) -> dict[str, float]:
    """Return the rise of each method, in a process of its own."""
    found = {}
    for name in ("base", "proxy_synthesis", "pretraining", "joint"):
        context = multiprocessing.get_context("spawn")
        receive, send = context.Pipe(duplex=False)
        child = context.Process(target=peak, args=(name, size, torch.get_num_threads(), send))
        child.start()
        send.close()  # the child has its own: one that dies ends the wait
        found[f"{name}_mb"] = receive.recv()
        child.join()
    return found


def measure(size: Size, large: Size, n_rounds: int, trunk: str) -> dict[str, object]:
    """Measure everything."""
    images = torch.randn(size.batch_size, 3, size.pixels, size.pixels, generator=torch.Generator().manual_seed(3))
    features = torch.randn(large.batch_size, large.n_features, generator=torch.Generator().manual_seed(2))

    def network() -> nn.Module:
        return kinfold.Embedder(trunk, size.dim, size=size.pixels, pretrained=False).train()

    return {
        "added_parameters": added(size),
        "whole_step": {loss: compared(size, loss, network, images, n_rounds) for loss in LOSSES},
        "objective_alone": {loss: compared(size, loss, lambda: Free(size), images, 5 * n_rounds) for loss in LOSSES},
        "sop": {
            "added_parameters": added(large),
            "head_only_step": compared(large, "proxy_nca", lambda: nn.Linear(large.n_features, large.dim), features, n_rounds),
            "peak_memory": peaks(large),
        },
    }


def main() -> None:
    """Measure, print, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="toy size: shows that it runs, measures nothing")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    keep_freed_memory()  # as the command line does
    torch.set_num_threads(arguments.threads)
    if arguments.smoke:
        print(json.dumps(measure(TOY, TOY_SOP, 1, "convnet")))
        return
    results = measure(CUB, SOP, arguments.rounds, "tf_efficientnet_lite0")
    print(json.dumps(results, indent=2))
    facts = {"threads": arguments.threads, "torch": torch.__version__, "cores": os.cpu_count(), "machine": platform.machine()}
    setting = {**CUB._asdict(), "novel_ratio": 2.0, "hidden_dim": 128, "rounds": arguments.rounds}
    RESULT.write_text(json.dumps({"results": results, **setting, **facts}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
