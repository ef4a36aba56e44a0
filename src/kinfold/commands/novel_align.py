"""`kinfold novel align`: are generated classes nearer to unseen classes than training classes are?"""

import numpy as np
import torch

from kinfold.commands.embeddings_of import embeddings_of
from kinfold.commands.output import print_json, print_table
from kinfold.core.distinct import distinct
from kinfold.data.levels import dense_codes
from kinfold.evaluation.alignment import Alignment, Side, alignment, side_of
from kinfold.novel_run import GeneratedClasses, generated_classes

LEAST, MOST = 10, 50
"""Vectors of each class where nothing else is said: the smallest class's, within these."""


def align_novel_command(  # noqa: PLR0913 (as many options as the command has)
    run: str, *, unseen: str, vectors: int | None, seed: int, workers: int, device: str | None, as_json: bool
) -> None:
    """Print how near generated and training classes lie to each other and to unseen ones."""
    found = generated_classes(run)
    real = {split: _labelled(run, split, workers, device) for split in ("train", unseen)}
    n = vectors or _smallest(real)
    training, other = (side_of(*columns, n_vectors=n, seed=seed) for columns in real.values())
    generated = _generated(found, n, seed)
    rows: dict[str, Alignment] = {
        "generated → training": alignment(generated, training, seed=seed),
        "generated → unseen": alignment(generated, other, seed=seed),
        "unseen → generated": alignment(other, generated, seed=seed),
        "unseen → training": alignment(other, training, seed=seed),
        "training → unseen": alignment(training, other, seed=seed),
        "training → training": alignment(training, training, itself=True, seed=seed),
    }
    if as_json:
        print_json({"run": run, "unseen": unseen, "vectors": n, "rows": {name: row.to_dict() for name, row in rows.items()}})
        return
    body = [
        [name, f"{row.n_classes[0]:,} → {row.n_classes[1]:,}", *(_cell(row, side) for side in ("forward", "backward"))]
        for name, row in rows.items()
    ]
    print_table(["nearest class of each", "classes", "KL(one ‖ other) / d", "KL(other ‖ one) / d"], body)
    print(
        f"Mean over the first side's classes of the smallest divergence to a class of the second, {n} vectors of each class; 95 % intervals over classes."
    )
    for side, name in (("forward", "KL(one ‖ other)"), ("backward", "KL(other ‖ one)")):
        print(f"{name}: {_nearer(rows['generated → unseen'], rows['training → unseen'], side)}")


def _labelled(run: str, split: str, workers: int, device: str | None) -> tuple[torch.Tensor, torch.Tensor]:
    rows = embeddings_of(run, split=split, workers=workers, device=device)
    return torch.from_numpy(np.asarray(rows.embedding)), torch.from_numpy(dense_codes(rows.label))


def _smallest(real: dict[str, tuple[torch.Tensor, torch.Tensor]]) -> int:
    return min(MOST, max(LEAST, min(int(distinct(label)[2].min()) for _, label in real.values())))


def _generated(found: GeneratedClasses, n: int, seed: int) -> Side:
    made, code = found.vectors(torch.arange(found.n_generated), n, seed=seed)
    return side_of(made, code, n_vectors=n, seed=seed)


def _nearer(generated: Alignment, training: Alignment, side: str) -> str:
    """Return which is nearer to unseen classes, or that the intervals overlap."""
    one, two = (getattr(row, side) for row in (generated, training))
    (low, high), (other_low, other_high) = (getattr(row, f"{side}_interval") for row in (generated, training))
    numbers = f"({one:.3f} generated, {two:.3f} training)"
    if low <= other_high and other_low <= high:
        return f"generated and training classes are about as near to unseen ones: the intervals overlap {numbers}"
    return f"{'generated' if one < two else 'training'} classes are nearer to unseen ones {numbers}"


def _cell(row: Alignment, side: str) -> str:
    low, high = getattr(row, f"{side}_interval")
    return f"{getattr(row, side):.3f} [{low:.3f}, {high:.3f}]"
