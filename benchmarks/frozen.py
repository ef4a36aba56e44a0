"""A training step from kept outputs of a frozen part against a step of the whole network, in turn.

Usage: python benchmarks/frozen.py [--smoke] [--rounds 7] [--threads 1]
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

import kinfold
from kinfold.allocator import keep_freed_memory
from kinfold.losses import proxy_anchor
from kinfold.models.frozen import Front, Rest

DIM, N_CLASSES, BATCH_SIZE, SIZE = 512, 100, 64, 160
PARTS = {"behind block 4": "blocks.4", "head alone": "trunk"}
RESULT = Path(__file__).parent / "results" / "frozen.json"


def stepper(part: str | None, images: torch.Tensor, label: torch.Tensor) -> Callable[[], None]:
    """Return what makes one update of the network, of which `part` is frozen and its outputs are kept."""
    embedder = kinfold.Embedder("tf_efficientnet_lite0", DIM, size=images.shape[-1]).freeze(part)
    model, x = embedder.train(), images
    if part is not None:
        with torch.no_grad():
            x = Front(embedder, part)(images)
        model = Rest(embedder, from_values=True)
    objective = kinfold.Proxies(proxy_anchor, N_CLASSES, DIM)
    params = [p for p in (*model.parameters(), *objective.parameters()) if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        objective.terms(model(x)[1], label).total.backward()
        optimizer.step()

    return step


def measure(n_rounds: int, *, size: int, batch_size: int) -> dict[str, dict[str, float]]:
    """Time all candidates in turn; medians of milliseconds and of the ratios within a round."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(batch_size, 3, size, size, generator=generator)
    label = torch.randint(N_CLASSES, (batch_size,), generator=generator)
    candidates = {name: stepper(part, images, label) for name, part in {"whole trunk": None, **PARTS}.items()}
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for round_number in range(n_rounds + 1):
        for name, step in candidates.items():
            begin = time.perf_counter()
            step()
            if round_number:  # the first warms up
                seconds[name].append(time.perf_counter() - begin)
    whole = seconds["whole trunk"]
    return {
        name: {
            "ms": 1000 * statistics.median(spent),
            "images_per_second": batch_size / statistics.median(spent),
            "times_faster": statistics.median(a / b for a, b in zip(whole, spent, strict=True)),
        }
        for name, spent in seconds.items()
    }


def main() -> None:
    """Measure, print, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="toy size: shows that it runs, measures nothing")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    keep_freed_memory()  # as the command line does
    torch.set_num_threads(arguments.threads)
    if arguments.smoke:
        print(json.dumps(measure(1, size=64, batch_size=4)))
        return
    results = measure(arguments.rounds, size=SIZE, batch_size=BATCH_SIZE)
    print(json.dumps(results, indent=2))
    facts = {"threads": arguments.threads, "torch": torch.__version__, "cores": os.cpu_count(), "machine": platform.machine()}
    setting = {"trunk": "tf_efficientnet_lite0", "size": SIZE, "batch_size": BATCH_SIZE, "rounds": arguments.rounds}
    RESULT.write_text(json.dumps({"results": results, **setting, **facts}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
