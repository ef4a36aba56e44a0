"""`score` beside a bare blocked product + top-101 and pytorch-metric-learning's AccuracyCalculator, on the same data in the same run."""

import argparse
import ctypes
import gc
import hashlib
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from kinfold.evaluation.evaluate import score

KS = (1, 10, 100, 1000)
METRICS = ("recall_at_k", "map_at_r")
BUDGETS = ("512MB", "64MB", "16MB")
BLOCK, TOP = 512, 101
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Settings:
    """What a run measures: sizes, seed and threads."""

    n: int = 60_502
    dim: int = 128
    n_classes: int = 11_316
    rounds: int = 5
    threads: int = 2
    seed: int = 0
    memory: str = "512MB"


def main() -> None:
    """Read the command line, measure, print a table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="toy size: shows that the benchmark runs, measures nothing")
    parser.add_argument("--rounds", type=int, default=Settings.rounds)
    parser.add_argument("--threads", type=int, default=Settings.threads)
    parser.add_argument("--out", type=Path, help="where the JSON goes (default: benchmarks/results/evaluation.json)")
    parser.add_argument("--peak", nargs=2, metavar=("CASE", "BUDGET"), help=argparse.SUPPRESS)
    parser.add_argument("--settings", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        case, budget = options.peak
        print(json.dumps(peak_here(case, budget, Settings(**json.loads(options.settings)))))
        return
    settings = Settings(rounds=options.rounds, threads=options.threads)
    if options.smoke:
        settings = replace(settings, n=2_000, n_classes=400, rounds=1)
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or (Path(folder) if options.smoke else RESULTS) / "evaluation.json"
        write_json(out, run(settings))
        print(f"written: {out}")


def run(settings: Settings) -> dict[str, object]:
    """Return the result of the whole benchmark."""
    torch.set_num_threads(settings.threads)
    cases = {name: measure(name, settings) for name in ("balanced", "imbalanced")}
    peaks = {budget: peak_in_child("balanced", budget, settings) for budget in BUDGETS}
    if len({peak["values"] for peak in peaks.values()}) != 1:
        raise SystemExit("per-query values differ between memory budgets")
    for budget, peak in peaks.items():
        print(f"memory {budget}: added {peak['added_mb']} MB")
    return {"metadata": metadata(settings), "cases": cases, "memory": peaks, "values_equal_for_every_budget": True}


def measure(case: str, settings: Settings) -> dict[str, object]:
    """Time all candidates in turn, round after round, after one warm-up each at a tenth of the size."""
    x, label = data(case, settings)
    few, few_label = x[: len(x) // 10], label[: len(x) // 10]
    candidates = candidates_of(settings)
    for candidate in candidates.values():
        candidate(few, few_label)
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(settings.rounds):
        for name, candidate in candidates.items():
            start = time.perf_counter()
            candidate(x, label)
            seconds[name].append(time.perf_counter() - start)
    size = torch.bincount(label)
    rows = {
        name: {"median_s": statistics.median(times), "all_s": times, "ratio": ratio(times, seconds)}
        for name, times in seconds.items()
    }
    print(f"\n{case}: {len(x)} x {x.shape[1]}, {len(size)} classes, largest {int(size.max())}")
    for name, row in rows.items():
        print(f"  {name:<42} {row['median_s']:8.2f} s   {row['ratio']:5.2f} x bare")
    scores = score(x, label, ks=KS, metrics=METRICS, memory=settings.memory)
    return {"n_classes": len(size), "largest_class": int(size.max()), "candidates": rows, "scores": dict(scores.metrics)}


def ratio(times: list[float], seconds: dict[str, list[float]]) -> float:
    """Return the median over rounds of the ratio to the bare search of the same round."""
    return statistics.median(a / b for a, b in zip(times, seconds["bare product + top-101"], strict=True))


def candidates_of(settings: Settings) -> dict[str, Callable[[Tensor, Tensor], object]]:
    """Return what is compared, by name; the first is the yardstick."""
    return {
        "bare product + top-101": lambda x, _: bare(x),
        "kinfold.score recall@1,10,100,1000, MAP@R": lambda x, label: score(
            x, label, ks=KS, metrics=METRICS, memory=settings.memory
        ),
        "kinfold.score all ranking metrics": lambda x, label: score(x, label, ks=KS, memory=settings.memory),
        "pytorch-metric-learning P@1, RP, MAP@R": accuracy_calculator(),
    }


def bare(x: Tensor) -> Tensor:
    """Return the 101 nearest rows of each row, itself included: the least that a list-based evaluation does."""
    x = normalize(x)
    sim, found = torch.empty(BLOCK, len(x)), torch.empty(len(x), TOP, dtype=torch.long)
    for first in range(0, len(x), BLOCK):
        rows = x[first : first + BLOCK]
        found[first : first + BLOCK] = torch.mm(rows, x.T, out=sim[: len(rows)]).topk(TOP, dim=1).indices
    return found


def accuracy_calculator() -> Callable[[Tensor, Tensor], object]:
    """Return pytorch-metric-learning's evaluation; its own blocked search in torch, so that nothing needs faiss."""
    from pytorch_metric_learning.distances import CosineSimilarity
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
    from pytorch_metric_learning.utils.inference import CustomKNN

    calculator = AccuracyCalculator(
        include=("precision_at_1", "r_precision", "mean_average_precision_at_r"),
        k="max_bin_count",
        device=torch.device("cpu"),
        knn_func=CustomKNN(CosineSimilarity(), batch_size=BLOCK),
    )
    return calculator.get_accuracy


def data(case: str, settings: Settings) -> tuple[Tensor, Tensor]:
    """Return embeddings with noisy classes, in random order: equal class sizes (SOP has 5.3 on average), or log-normal ones."""
    generator = torch.Generator().manual_seed(settings.seed)
    share = torch.ones(settings.n_classes)
    if case == "imbalanced":
        share = torch.randn(settings.n_classes, generator=generator).mul(1.2).exp()
    last = (share.cumsum(0) / share.sum() * settings.n).round().long()
    label = torch.searchsorted(last, torch.arange(settings.n), right=True).clamp_max(settings.n_classes - 1)
    centre = torch.randn(settings.n_classes, settings.dim, generator=generator)
    x = 0.6 * centre[label] + torch.randn(settings.n, settings.dim, generator=generator)
    order = torch.randperm(settings.n, generator=generator)
    return x[order], label[order]


def peak_in_child(case: str, budget: str, settings: Settings) -> dict[str, object]:
    """Return what `peak_here` says in a process of its own."""
    command = [sys.executable, __file__, "--peak", case, budget, "--settings", json.dumps(asdict(settings))]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_here(case: str, budget: str, settings: Settings) -> dict[str, object]:
    """Return how far the resident memory rises above the loaded library and the inputs while scoring, and a hash of all values."""
    torch.set_num_threads(settings.threads)
    x, label = data(case, settings)
    return_free_memory()
    before = resident("VmRSS")
    scores = score(x, label, ks=KS, metrics=METRICS, memory=budget)
    added = resident("VmHWM") - before
    values = hashlib.sha256(b"".join(value.numpy().tobytes() for value in scores.per_query.values())).hexdigest()
    return {"added_mb": round(added / 1e6, 1), "values": values}


def return_free_memory() -> None:
    """Hand what the making of the data has freed back to the system, or scoring could use it unseen."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim:
        trim(0)


def resident(field: str) -> int:
    """Return the current (VmRSS) or largest (VmHWM) resident memory in bytes; asking for the current one resets the largest."""
    status = Path("/proc/self/status")
    if not status.exists():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if field == "VmRSS":
        Path("/proc/self/clear_refs").write_text("5")
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def metadata(settings: Settings) -> dict[str, object]:
    """Return what a reader needs to judge or repeat the numbers."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": asdict(settings),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": processor(),
        "versions": {name: version(name) for name in ("kinfold", "torch", "numpy", "pytorch-metric-learning")},
    }


def processor() -> str:
    """Return the name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def write_json(path: Path, result: dict[str, object]) -> None:
    """Write a result next to the others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
