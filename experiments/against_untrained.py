"""A finished run against the untrained features of its trunk, on the same test images, with paired intervals.

run:     python experiments/against_untrained.py RUN
Writes experiments/results/<name of the run>.json: both scores, their difference per level, bootstrap intervals over queries and classes.
"""

import argparse
import json
from pathlib import Path

import torch

import kinfold
from kinfold.embeddings import read_embeddings
from kinfold.engine.run import Run

METRICS = ("recall_at_1", "map_at_r")


def main() -> None:
    """Score both, pair them, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run folder that `kinfold train` has finished and measured")
    run = Run(parser.parse_args().run)
    torch.set_num_threads(1)
    config = run.config()
    test = kinfold.read_table(config["data"]["root"]).of_split("test")
    untrained_model = kinfold.Embedder(config["model"]["trunk"], None, size=config["data"]["size"])
    trained = kinfold.score_table(read_embeddings(run.folder / "embeddings_test.npz"), metrics=METRICS)
    untrained = kinfold.evaluate(untrained_model, test, metrics=METRICS)
    rows = run.rows()
    result = {
        "config": {key: value for key, value in config.items() if key not in ("run", "data_fingerprint")},
        "environment": {
            key: value for key, value in json.loads((run.folder / "environment.json").read_text()).items() if key != "command"
        },
        "training_minutes": round((rows[-1]["time"] - rows[0]["time"]) / 60, 1),
        "levels": {level: compared(trained[level], untrained[level]) for level in trained},
    }
    result["config"]["data"]["root"] = Path(config["data"]["root"]).name
    file = Path(__file__).parent / "results" / f"{run.folder.name}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result["levels"], indent=2))


def compared(trained: kinfold.Scores, untrained: kinfold.Scores) -> dict[str, dict[str, object]]:
    """Return both values, their difference, and its intervals."""
    found = {}
    for name in METRICS:
        intervals = {over: kinfold.difference_interval(trained, untrained, name, over=over) for over in ("query", "class")}
        found[name] = {
            "trained": trained.metrics[name],
            "untrained": untrained.metrics[name],
            "difference": trained.metrics[name] - untrained.metrics[name],
            **{f"difference_interval_over_{over}": [ends.low, ends.high] for over, ends in intervals.items()},
        }
    return found


if __name__ == "__main__":
    main()
