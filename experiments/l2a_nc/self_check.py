"""Does the generator do what it is for? Its classes on a sphere of Gaussians, for hosts, divergences and seeds.

Usage: python experiments/l2a_nc/self_check.py [--steps 3000] [--seeds 3]
writes experiments/results/l2a_nc/self_check.json; recorded with --seeds 2: 18 runs of about 12 s on one thread.

Twenty classes are Gaussians around random directions (64 numbers, then onto the sphere), of spread 0.3: of each coordinate (`wide`: classes
overlap), or of the whole vector (`narrow`); their proxies are the directions. The real side stays as it is; the generator of 40 novel classes and their proxies train as in the pretraining stage.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR

from kinfold.core.divergence import DIVERGENCES
from kinfold.core.novelty import own_similarity, real_similarity, within_variance
from kinfold.core.reduce import normalise
from kinfold.losses import normalized_softmax, proxy_anchor, proxy_nca
from kinfold.objectives import NovelClasses, Proxies
from kinfold.records import Embedded

RESULT = Path(__file__).parents[1] / "results" / "l2a_nc" / "self_check.json"
N_CLASSES, DIM, BATCH_SIZE = 20, 64, 128
SPREADS = {"wide": 0.3, "narrow": 0.3 / DIM**0.5}
LOSSES = {
    "normalized_softmax": partial(normalized_softmax, scale=23.0),
    "proxy_nca": partial(proxy_nca, scale=24.0),
    "proxy_anchor": proxy_anchor,
}
WEIGHTS = {"gauss_kl": 1.0, "classwise_kl": 1.0, "mmd": 10.0, "sliced_wasserstein": 10.0}


class Sphere:
    """Gaussians around random directions."""

    def __init__(self, seed: int, spread: str):
        self.spread = SPREADS[spread]
        self.generator = torch.Generator().manual_seed(seed)
        self.centres = normalise(torch.randn(N_CLASSES, DIM, generator=self.generator))

    def batch(self, n: int) -> Embedded:
        """Return n unit vectors with their classes."""
        label = torch.randint(N_CLASSES, (n,), generator=self.generator)
        x = normalise(self.centres[label] + self.spread * torch.randn(n, DIM, generator=self.generator))
        return Embedded(x, x, label, torch.arange(n), torch.zeros(n, dtype=torch.long))


def check(
    loss: str = "normalized_softmax", divergence: str = "gauss_kl", spread: str = "wide", *, seed: int = 0, steps: int = 3000
) -> dict[str, float]:
    """Train a generator and return what can be said of its classes."""
    world = Sphere(seed, spread)
    base = Proxies(LOSSES[loss], N_CLASSES, DIM)
    with torch.no_grad():
        base.proxies.copy_(world.centres)
    how = {"divergence": DIVERGENCES[divergence], "divergence_weight": WEIGHTS[divergence]}
    objective = NovelClasses(base, pretraining_epochs=1, **how, seed=seed)
    groups = [{"params": list(objective.generator.parameters()), "lr": 1e-3}, {"params": [objective.novel_proxies], "lr": 1e-2}]
    optimizer = AdamW(groups, weight_decay=1e-4)
    schedule = CosineAnnealingLR(optimizer, steps)
    begin = time.perf_counter()
    for _ in range(steps):
        losses = objective(world.batch(BATCH_SIZE), "generator")
        optimizer.zero_grad()
        losses.total.backward()
        optimizer.step()
        schedule.step()
    found = judged(objective, world)
    return {**found, "seconds": round(time.perf_counter() - begin, 1)}


@torch.no_grad()
def judged(objective: NovelClasses, world: Sphere) -> dict[str, float]:
    """Return similarities, and mean and variance of generated vectors against real ones."""
    x, code = objective.generator.looked_at(torch.arange(objective.n_novel), 50)
    real = world.batch(len(x))
    y = real.embedding
    own, to_real = own_similarity(x, code, objective.novel_proxies), real_similarity(objective.novel_proxies, world.centres)
    variance = y.var(dim=0).sum()
    within = within_variance(x, code) / within_variance(y, real.label).mean()
    return {
        "own_similarity": own.mean,
        "own_similarity_min": own.minimum,
        "novel_to_real_mean": to_real.mean,
        "novel_to_real_max": to_real.maximum,
        "novel_to_real_max_of_proxy_synthesis": real_similarity(mixed(world), world.centres).maximum,
        "mean_apart": float((x.mean(dim=0) - y.mean(dim=0)).norm() / variance.sqrt()),
        "variance_ratio": float(x.var(dim=0).sum() / variance),
        "within_min": float(within.min()),
        "within_max": float(within.max()),
    }


def mixed(world: Sphere, n: int = 2000, concentration: float = 0.4) -> Tensor:
    """Return synthetic proxies as Proxy Synthesis makes them: shares λ ~ Beta(a, a) of two different real ones."""
    one = torch.randint(N_CLASSES, (n,), generator=world.generator)
    other = (one + torch.randint(1, N_CLASSES, (n,), generator=world.generator)) % N_CLASSES
    draw = torch.distributions.Gamma(concentration, 1.0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        a, b = draw.sample((n, 1)), draw.sample((n, 1))
    share = a / (a + b).clamp(min=1e-12)
    return normalise(share * world.centres[one] + (1 - share) * world.centres[other])


def main() -> None:
    """Check every host with gauss_kl and every divergence with the softmax, several seeds each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    cells = [(loss, "gauss_kl", spread) for loss in LOSSES for spread in SPREADS]
    cells += [("normalized_softmax", name, "wide") for name in WEIGHTS if name != "gauss_kl"]
    found = {}
    for cell in cells:
        rows = [check(*cell, seed=seed, steps=arguments.steps) for seed in range(arguments.seeds)]
        found[", ".join(cell)] = rows
        print(*cell, {name: [round(row[name], 3) for row in rows] for name in rows[0]}, flush=True)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"steps": arguments.steps, "cells": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
