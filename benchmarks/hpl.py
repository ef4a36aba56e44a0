"""What hierarchical proxies add to a training step at the size of Stanford Online Products, each part alone and in whole steps.

Usage: python benchmarks/hpl.py [--smoke] [--rounds 9] [--threads 2]
"""

import argparse
import json
import os
import platform
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from timing import in_turn, ratio, timed
from torch import nn

import kinfold
from kinfold.allocator import keep_freed_memory
from kinfold.core.clustering import assign, recentre, refill
from kinfold.losses import proxy_anchor
from kinfold.objectives import HierarchicalProxies, Proxies

RESULT = Path(__file__).parent / "results" / "hpl.json"


class Size(NamedTuple):
    """How large everything is."""

    n_classes: int = 11_318
    n_groups: int = 500
    dim: int = 512
    batch_size: int = 120
    refresh_every: int = 100
    pixels: int = 128
    n_features: int = 1280


SOP, TOY = Size(), Size(60, 6, 16, 8, 10, 32, 24)


def objectives(size: Size) -> tuple[Proxies, HierarchicalProxies]:
    """Return Proxy Anchor alone and with a coarse level, which is clustered already (at random: its place changes no time)."""
    base = Proxies(proxy_anchor, size.n_classes, size.dim)
    hpl = HierarchicalProxies(
        Proxies(proxy_anchor, size.n_classes, size.dim),
        (size.n_groups,),
        refresh_every=size.refresh_every,
        clustering=lambda x, k, *, seed: torch.randint(k, (len(x),), generator=torch.Generator().manual_seed(seed)),
    )
    hpl.start()
    return base, hpl


def stepper(model: nn.Module, objective: nn.Module, x: torch.Tensor, label: torch.Tensor) -> Callable[[], None]:
    """Return what makes one update of model and proxies."""
    optimizer = torch.optim.AdamW([*model.parameters(), *objective.parameters()], lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        out = model(x)
        objective.terms(out[1] if isinstance(out, tuple) else out, label).total.backward()
        optimizer.step()

    return step


def steps(size: Size, model: Callable[[], nn.Module], x: torch.Tensor, n_rounds: int, refresh: float) -> dict[str, float]:
    """Compare whole steps with and without a coarse level; refreshes are added by their share."""
    label = torch.randint(size.n_classes, (size.batch_size,), generator=torch.Generator().manual_seed(1))
    base, hpl = objectives(size)
    spent = in_turn({"base": stepper(model(), base, x, label), "hpl": stepper(model(), hpl, x, label)}, n_rounds)
    share = refresh / size.refresh_every
    with_refresh = {"base": spent["base"], "hpl": [each + share for each in spent["hpl"]]}
    return {
        "base_ms": statistics.median(spent["base"]),
        "hpl_ms": statistics.median(with_refresh["hpl"]),
        "hpl_over_base": ratio(with_refresh, "hpl", "base"),
    }


def parts(size: Size, n_rounds: int) -> dict[str, float]:
    """Time the parts alone: the coarse term with its gradient, a refresh, the matrix product in it, and its other steps."""
    generator = torch.Generator().manual_seed(0)
    _, hpl = objectives(size)
    level, below = hpl.levels[0], hpl.base.proxies.detach()
    x = torch.randn(size.batch_size, size.dim, generator=generator, requires_grad=True)
    group = level.parent[torch.randint(size.n_classes, (size.batch_size,), generator=generator)]
    code = assign(below, level.proxies)
    candidates = {
        "coarse_term": lambda: hpl.against(x, group, level.proxies).backward(),
        "product": lambda: below @ level.proxies.T,
        "refresh": hpl.refresh,
        "assign": lambda: assign(below, level.proxies),
        "refill": lambda: refill(below, code, level.proxies),
        "recentre": lambda: recentre(below, code, level.proxies),
    }
    spent = in_turn(candidates, n_rounds)
    found = {f"{name}_ms": statistics.median(times) for name, times in spent.items()}
    return {**found, "refresh_over_product": ratio(spent, "refresh", "product")}


def first_clustering(size: Size) -> float:
    """Return the seconds of the first k-means, which a run pays once."""
    proxies = Proxies(proxy_anchor, size.n_classes, size.dim)
    return timed(HierarchicalProxies(proxies, (size.n_groups,)).start) / 1000


def measure(size: Size, n_rounds: int, trunk: str) -> dict[str, object]:
    """Measure everything."""
    alone = parts(size, 5 * n_rounds)
    features = torch.randn(size.batch_size, size.n_features, generator=torch.Generator().manual_seed(2))
    images = torch.randn(size.batch_size, 3, size.pixels, size.pixels, generator=torch.Generator().manual_seed(3))

    def network() -> nn.Module:
        return kinfold.Embedder(trunk, size.dim, size=size.pixels, pretrained=False).train()

    head = steps(size, lambda: nn.Linear(size.n_features, size.dim), features, 5 * n_rounds, alone["refresh_ms"])
    whole = steps(size, network, images, n_rounds, alone["refresh_ms"])
    added = alone["coarse_term_ms"] + alone["refresh_ms"] / size.refresh_every
    return {
        "parts": alone,
        "head_only_step": {**head, "parts_over_base": added / head["base_ms"]},
        "whole_step": {**whole, "parts_over_base": added / whole["base_ms"]},
        "first_clustering_s": first_clustering(size),
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
        print(json.dumps(measure(TOY, 1, "convnet")))
        return
    results = measure(SOP, arguments.rounds, "tf_efficientnet_lite0")
    print(json.dumps(results, indent=2))
    facts = {"threads": arguments.threads, "torch": torch.__version__, "cores": os.cpu_count(), "machine": platform.machine()}
    setting = {**SOP._asdict(), "loss": "proxy_anchor", "rounds": arguments.rounds}
    RESULT.write_text(json.dumps({"results": results, **setting, **facts}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
