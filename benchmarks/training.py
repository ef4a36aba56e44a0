"""The engine's step against a bare torch loop: same trunk, data, loss and optimiser, step by step in turn.

Usage: python benchmarks/training.py [--smoke] [--steps 200] [--threads 1]
"""

import argparse
import contextlib
import copy
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import kinfold
from kinfold.data.datasets import ImageFiles
from kinfold.data.loader import ImageLoader
from kinfold.data.samplers import MPerClassSampler
from kinfold.data.transforms import train_transform
from kinfold.engine.fit import Task, fit
from kinfold.engine.run import Run
from kinfold.engine.settings import FitSettings, LoopSettings, OptimizerSettings
from kinfold.engine.watch import NoWatch, Tick
from kinfold.losses import proxy_anchor

DIM, N_CLASSES, PER_CLASS, WARM_UP = 128, 40, 16, 5
CASES = {"glyph net, 48 px, batch 64": ("convnet", 48, 64), "Lite0, 128 px, batch 16": ("tf_efficientnet_lite0", 128, 16)}
RESULT = Path(__file__).parent / "results" / "training.json"


class Bare:
    """The loop that everybody writes first."""

    def __init__(self, embedder: kinfold.Embedder, objective: kinfold.Proxies, loader: ImageLoader):
        self.model, self.objective = embedder.train(), objective
        groups = [*embedder.parameter_groups(), *objective.parameter_groups()]
        rates = [{"params": group.params, "lr": 1e-4 * group.lr_scale} for group in groups]
        self.optimizer = torch.optim.AdamW(rates, lr=1e-4, weight_decay=1e-4)
        self.batches = self._batches(loader)

    @staticmethod
    def _batches(loader: ImageLoader):
        epoch = 0
        while True:
            yield from loader.epoch(epoch)
            epoch += 1

    def step(self) -> None:
        """Make one update."""
        batch = next(self.batches)
        _, embedding = self.model(batch.image)
        loss = self.objective.terms(embedding, batch.label).total
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class Turns(NoWatch):
    """After each step of the engine, takes one bare step; measures both."""

    def __init__(self, bare: Bare, n_steps: int):
        self.bare, self.n_steps = bare, n_steps
        self.engine_seconds: list[float] = []
        self.bare_seconds: list[float] = []
        self._from = time.perf_counter()

    def tick(self, tick: Tick) -> None:  # noqa: ARG002 (only the moment matters)
        """Note the engine's time, then take a bare step."""
        begin = time.perf_counter()
        self.engine_seconds.append(begin - self._from)
        self.bare.step()
        self._from = time.perf_counter()
        self.bare_seconds.append(self._from - begin)
        if len(self.bare_seconds) == self.n_steps + WARM_UP:
            raise StopIteration


def pictures(folder: Path, size: int) -> list[Path]:
    """Write noise in the colours of each class."""
    random = np.random.default_rng(0)
    paths = []
    for number in range(N_CLASSES * PER_CLASS):
        color = np.random.default_rng(number // PER_CLASS).uniform(0, 255, 3)
        image = np.clip(color + random.normal(0, 40, (size, size, 3)), 0, 255).astype(np.uint8)
        paths.append(folder / f"{number}.jpg")
        Image.fromarray(image).save(paths[-1])
    return paths


def measure(case: tuple[str, int, int], n_steps: int, folder: Path) -> dict[str, float]:
    """Time both loops in turn and return medians in milliseconds."""
    trunk, size, batch_size = case
    paths = pictures(folder, size)
    label = torch.arange(len(paths)) // PER_CLASS
    embedder = kinfold.Embedder(trunk, DIM, size=size)
    objective = kinfold.Proxies(proxy_anchor, N_CLASSES, DIM)

    def loader() -> ImageLoader:
        sampler = MPerClassSampler(label, m=4, batch_size=batch_size)
        return ImageLoader(ImageFiles(paths), label, transform=train_transform(embedder.preprocessing), sampler=sampler)

    turns = Turns(Bare(copy.deepcopy(embedder), copy.deepcopy(objective), loader()), n_steps)
    run = Run(folder / "run")
    run.folder.mkdir()
    settings = FitSettings(
        loop=LoopSettings(epochs=10**6, accelerator="cpu"), optimizer=OptimizerSettings(learning_rate=1e-4, weight_decay=1e-4)
    )
    with contextlib.suppress(StopIteration):
        fit(embedder, objective, Task(loader(), None), settings=settings, run=run, watch=turns)  # pyright: ignore[reportArgumentType]
    engine, bare = turns.engine_seconds[WARM_UP:], turns.bare_seconds[WARM_UP:]
    differences = [a - b for a, b in zip(engine, bare, strict=True)]
    return {
        "n_steps": len(bare),
        "engine_ms": 1000 * statistics.median(engine),
        "bare_ms": 1000 * statistics.median(bare),
        "ratio_of_medians": statistics.median(engine) / statistics.median(bare),
        "median_of_paired_ratios": statistics.median(a / b for a, b in zip(engine, bare, strict=True)),
        "median_paired_difference_ms": 1000 * statistics.median(differences),
    }


def main() -> None:
    """Measure both nets, print, and keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="toy size: shows that it runs, measures nothing")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    n_steps = 3 if arguments.smoke else arguments.steps
    results = {}
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            results[name] = measure(case, n_steps, Path(folder))
        print(name, json.dumps(results[name]))
    facts = {
        "threads": arguments.threads,
        "torch": torch.__version__,
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }
    if not arguments.smoke:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps({"results": results, **facts}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
