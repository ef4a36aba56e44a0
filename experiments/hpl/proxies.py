"""Do class proxies know the families of birds, and when? AMI of their clusters with the given families, on CUB's training classes.

run:  KINFOLD_DATA=PATH/TO/photographs python experiments/hpl/proxies.py
Trains Proxy Anchor in the frozen lane (seed 0) and clusters the proxies as they start and as they end, and the class means of the
embeddings before and after; writes experiments/results/hpl/proxies.json.
"""

import json
import tempfile
from pathlib import Path

import torch

from kinfold.build import build_embedder, build_table
from kinfold.build_objective import build_objective
from kinfold.clusterings import CLUSTERINGS
from kinfold.config import Config
from kinfold.core.clustering import centres_of, in_space, kmeans
from kinfold.data.hierarchies import hierarchy_of
from kinfold.data.table import Table
from kinfold.engine.checkpoint import load_checkpoint
from kinfold.evaluation.cluster_metrics import ami
from kinfold.experiment import train_experiment
from kinfold.head_start import start_head
from kinfold.measure import embed_table
from kinfold.models.embedder import Embedder
from kinfold.train import feature_cache

RESULT = Path(__file__).parents[1] / "results" / "hpl" / "proxies.json"
SETTINGS = {
    "data": {"root": "$KINFOLD_DATA/cub200", "size": 160},
    "model": {"dim": 512, "head_start": "pca", "frozen": "trunk"},
    "batches": {"augment": False},
    "train": {"epochs": 10},
    "optimizer": {"learning_rate": 3e-4},
    "objective": {"lr_scale": 30},
    "schedule": {"kind": "cosine"},
}
SIZES, N_STARTS = (10, 29), 5


def main() -> None:
    """Train, cluster, write."""
    with tempfile.TemporaryDirectory() as folder:
        config = Config(run=f"{folder}/run", **SETTINGS)
        table = build_table(config.data)
        train = table.of_split("train")
        family = hierarchy_of(train, "family").codes[0]
        untrained = build_embedder(config)
        start_head(untrained, train, "pca", cache=feature_cache(untrained, config.recipe))
        start = build_objective(config.objective, n_classes=train.n_classes, dim=512, seed=config.seed).state_dict()["proxies"]
        vectors = {"proxies at the start": start, "class means at the start": means(untrained, train, config)}
        trained = train_experiment(config, table)
        vectors["proxies at the end"] = load_checkpoint(trained.run.last)["objective"]["proxies"]
        vectors["class means at the end"] = means(trained.embedder, train, config)
    found = {name: agreement(x, family) for name, x in vectors.items()}
    RESULT.write_text(json.dumps({"settings": SETTINGS, "n_starts": N_STARTS, "ami": found}, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


def means(embedder: Embedder, train: Table, config: Config) -> torch.Tensor:
    """Return the mean direction of each class's embeddings."""
    embedded = embed_table(embedder, train, cache=feature_cache(embedder, config.recipe))
    return centres_of(in_space(embedded.embedding, unit=True), embedded.label, train.n_classes, unit=True)


def agreement(x: torch.Tensor, family: torch.Tensor) -> dict[str, float]:
    """Return the AMI of clusters with the families: k-means (mean over starts) of vectors and of directions, and Ward."""
    found = {}
    for size in SIZES:
        for space in ("raw", "unit"):
            codes = [
                kmeans(x, size, generator=torch.Generator().manual_seed(seed), unit=space == "unit") for seed in range(N_STARTS)
            ]
            found[f"kmeans {space} {size}"] = sum(ami(family, code) for code in codes) / N_STARTS
        found[f"agglomerative unit {size}"] = ami(family, CLUSTERINGS["agglomerative"](in_space(x, unit=True), size, seed=0))
    return {name: round(value, 3) for name, value in found.items()}


if __name__ == "__main__":
    main()
