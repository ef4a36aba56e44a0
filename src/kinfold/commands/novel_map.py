"""`kinfold novel map`: generated vectors among real ones, and alone, on the plane."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from kinfold.commands.embeddings_of import embeddings_of
from kinfold.commands.output import percent, print_json, say
from kinfold.core.reduce import normalise
from kinfold.errors import DataError
from kinfold.evaluation.exclusion import SameItem
from kinfold.evaluation.neighbours import nearest
from kinfold.novel_run import GeneratedClasses, generated_classes
from kinfold.reports.embedding_map import Panel, draw_maps
from kinfold.reports.projection import perplexity_for, project

PERPLEXITY = 30.0
K = 10
N_COLOURED = 12
GENERATED, TRAINING, UNSEEN = "generated", "training images", "images of unseen classes"


@dataclass(frozen=True)
class MapOptions:
    """What can be set on the command line."""

    out: Path = Path("figures")
    max_images: int = 1500
    per_class: int = 8
    seed: int = 0
    workers: int = 0
    device: str | None = None


def map_novel_command(run: str, options: MapOptions, *, as_json: bool) -> None:
    """Draw both maps, print whose neighbours generated vectors are, and the files written."""
    found = generated_classes(run)
    training = _some(run, "train", options)
    try:
        unseen = _some(run, "test", options)
    except DataError as error:
        say(f"without images of unseen classes: {error}")
        unseen = np.empty((0, training.shape[1]), np.float32)
    n_classes = min(found.n_generated, max(1, options.max_images // options.per_class))
    chosen = torch.from_numpy(np.sort(np.random.default_rng(options.seed).choice(found.n_generated, n_classes, replace=False)))
    made, code = found.vectors(chosen, options.per_class, seed=options.seed)
    shares = _neighbours(made, code, torch.from_numpy(training))
    of_unseen = _generated_share(torch.from_numpy(unseen), made, torch.from_numpy(training))
    detail = f"{K} nearest of a generated vector: {percent(shares['training'])} % training images, {percent(shares['own'])} % of its own class"
    if of_unseen is not None:
        detail += f"; of an unseen image: {percent(of_unseen)} % generated"
    files = [_joint(found, made, training, unseen, options, detail), _alone(found, chosen, options)]
    if as_json:
        print_json({"run": run, "k": K, "neighbours": shares, "unseen_generated": of_unseen, "files": list(map(str, files))})
        return
    print(
        f"the {K} nearest of a generated vector, among {len(made):,} generated and {len(training):,} training vectors: {percent(shares['own'])} % of its own "
        f"class, {percent(shares['other'])} % of other generated classes, {percent(shares['training'])} % training images"
    )
    if of_unseen is not None:
        print(f"the {K} nearest of an image of an unseen class, among the same vectors: {percent(of_unseen)} % generated")
    for file in files:
        print(f"wrote {file}")


def _some(run: str, split: str, options: MapOptions) -> np.ndarray:
    embedding = embeddings_of(run, split=split, workers=options.workers, device=options.device).embedding
    n = min(len(embedding), options.max_images)
    rows = np.sort(np.random.default_rng(options.seed).choice(len(embedding), n, replace=False))
    return np.asarray(embedding[rows], dtype=np.float32)


def _neighbours(made: torch.Tensor, code: torch.Tensor, training: torch.Tensor) -> dict[str, float]:
    """Return the shares of generated vectors' neighbours that are of their own class, of another generated one, and real."""
    every = torch.cat([made, normalise(training)])
    item = torch.arange(len(every))
    found = nearest(made, every, min(K, len(every) - 1), exclude=SameItem(item[: len(made)], item))
    query = torch.repeat_interleave(torch.arange(len(made)), found.start.diff())
    is_made = found.index < len(made)
    own = is_made & (code[query] == code[found.index.clamp(max=len(made) - 1)])
    n = len(found.index)
    return {"own": float(own.sum()) / n, "other": float((is_made & ~own).sum()) / n, "training": float((~is_made).sum()) / n}


def _generated_share(unseen: torch.Tensor, made: torch.Tensor, training: torch.Tensor) -> float | None:
    """Return the share of generated vectors among the neighbours of unseen classes' images: are they where those will be?"""
    if not len(unseen):
        return None
    every = torch.cat([made, normalise(training)])
    found = nearest(unseen, every, min(K, len(every)))
    return float((found.index < len(made)).float().mean())


def _joint(
    found: GeneratedClasses,
    made: torch.Tensor,
    training: np.ndarray,
    unseen: np.ndarray,
    options: MapOptions,
    detail: str,
) -> Path:
    rows = np.concatenate([made.numpy(), training, unseen])
    say(f"laying out {len(rows):,} vectors")
    position = project(rows, perplexity=PERPLEXITY, seed=options.seed)
    category = [GENERATED] * len(made) + [TRAINING] * len(training) + [UNSEEN] * len(unseen)
    caption = (
        f"t-SNE (perplexity {perplexity_for(len(rows), PERPLEXITY):g}) of {len(made):,} generated vectors ({options.per_class} of each of "
        f"{len(made) // options.per_class:,} of {found.n_generated:,} classes), {len(training):,} training images and {len(unseen):,} images of unseen classes; cosine; "
        f"seed {options.seed}."
    )
    file = options.out / "novel_map.png"
    draw_maps([Panel(found.run.folder.name, position, detail)], category, file, hulls=False, caption=caption)
    return file


def _alone(found: GeneratedClasses, chosen: torch.Tensor, options: MapOptions) -> Path:
    """Draw generated vectors alone, in the colours of their classes: twelve that are spread evenly over the numbers."""
    places = np.unique(np.linspace(0, len(chosen) - 1, N_COLOURED).round().astype(int))
    made, code = found.vectors(chosen[torch.from_numpy(places)], 4 * options.per_class, seed=options.seed)
    position = project(made.numpy(), perplexity=PERPLEXITY, seed=options.seed)
    names = [f"class {number}" for number in code.tolist()]
    caption = (
        f"t-SNE (perplexity {perplexity_for(len(made), PERPLEXITY):g}) of {4 * options.per_class} generated vectors of each of {len(places)} of "
        f"{found.n_generated:,} classes, spread evenly over their numbers; cosine; seed {options.seed}."
    )
    file = options.out / "novel_classes.png"
    draw_maps([Panel(found.run.folder.name, position)], names, file, category_name="generated class", caption=caption)
    return file
