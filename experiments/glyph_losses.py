"""Every loss on characters of writing systems never trained on: the table of the README.

run:     python experiments/glyph_losses.py
The same small net, batches and number of epochs for all, learning rates as below, every loss at its defaults, one seed, last epoch.
No setting was chosen on the test characters. Results are kept beside this file, in glyph_losses.json.
"""

import json
import tempfile
import time
from functools import partial
from pathlib import Path

import torch

import kinfold
from kinfold.core.mining import multi_similarity_mining, semi_hard
from kinfold.losses import LOSSES

EPOCHS, SIZE, DIM = 6, 32, 64
PROXY_LOSSES = ("proxy_anchor", "normalized_softmax", "proxy_nca")
RESULT = Path(__file__).with_suffix(".json")


def objective(name: str, n_classes: int) -> kinfold.Objective:
    """Return the loss in its usual setting: with proxies, or between images with its usual mining."""
    if name in PROXY_LOSSES:
        return kinfold.Proxies(LOSSES[name], n_classes, DIM, lr_scale=10)
    if name == "triplet":
        return kinfold.Pairwise(partial(LOSSES[name], margin=0.1, pick=partial(semi_hard, margin=0.1), average="active"))
    miner = multi_similarity_mining if name == "multi_similarity" else None
    return kinfold.Pairwise(LOSSES[name], miner=miner)


def main() -> None:
    """Train with each loss and write the table."""
    torch.set_num_threads(1)
    recipe = kinfold.Recipe(
        train={"epochs": EPOCHS},
        batches={"batch_size": 64, "images_per_class": 4, "crop_scale": (0.6, 1.0), "flip": False},
        optimizer={"learning_rate": 3e-3},
        schedule={"kind": "one_cycle"},
    )
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        table = kinfold.write_glyphs(Path(folder) / "glyphs")
        train, test = table.of_split("train"), table.of_split("test")
        untrained = kinfold.evaluate(kinfold.Embedder("convnet", DIM, size=SIZE), test, ks=(1,))["label"].metrics
        results["untrained network"] = {name: untrained[name] for name in ("recall_at_1", "map_at_r")}
        for name in LOSSES:
            begin = time.perf_counter()
            embedder = kinfold.Embedder("convnet", DIM, size=SIZE)
            kinfold.fit(table, embedder, objective(name, train.n_classes), run=Path(folder) / name, recipe=recipe)
            scores = kinfold.evaluate(embedder, test, ks=(1,))["label"]
            low, high = scores.interval("recall_at_1", over="class")
            results[name] = {
                "recall_at_1": scores.metrics["recall_at_1"],
                "interval over classes": [low, high],
                "map_at_r": scores.metrics["map_at_r"],
                "seconds": round(time.perf_counter() - begin),
            }
            print(name, json.dumps(results[name]), flush=True)
            RESULT.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
