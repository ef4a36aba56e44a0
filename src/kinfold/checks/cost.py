"""How long a run will take, from a few measured steps."""

from collections.abc import Mapping
from dataclasses import dataclass

from kinfold.checks.finding import Finding
from kinfold.checks.settings import n_evaluations, n_views
from kinfold.checks.speed import Speed
from kinfold.checks.units import as_time
from kinfold.recipe import Recipe


@dataclass(frozen=True)
class Afterwards:
    """What is done once training has ended.

    Attributes:
        n_measured: images that are embedded and scored.
        memory: what the blocks of similarities may take then.
        keeps_embeddings: they are written into the run folder.
    """

    n_measured: int = 0
    memory: str | int = "512MB"
    keeps_embeddings: bool = False


@dataclass(frozen=True)
class Amounts:
    """How much there is to do.

    Attributes:
        n_batches: of an epoch.
        n_train: training images.
        n_val: images to validate on.
        embeds_train_set: the objective asks for the embeddings of all training images in every epoch.
        afterwards: what follows training.
    """

    n_batches: int
    n_train: int
    n_val: int = 0
    embeds_train_set: bool = False
    afterwards: Afterwards = Afterwards()


def seconds_of_run(speed: Speed, recipe: Recipe, amounts: Amounts) -> dict[str, float]:
    """Return how long the parts of a run take.

    Loading and computing add up without workers, and the slower of the two counts with workers. A frozen part whose outputs are kept
    runs once for every image, and every view.

    Args:
        speed: seconds per batch.
        recipe: epochs, workers, views.
        amounts: how much there is to do.

    Returns:
        `training`, `validation`, `measuring`: seconds, without ranking.

    Example:
        >>> speed = Speed(load=1.0, front=0.0, step=2.0, embed=0.5, n_images=10)
        >>> recipe = Recipe(train={"epochs": 3})
        >>> seconds_of_run(speed, recipe, Amounts(n_batches=4, n_train=40, n_val=20))
        {'training': 36.0, 'validation': 9.0, 'measuring': 0.0}
    """
    epochs, workers = recipe.train.epochs, recipe.batches.workers

    def with_data(compute: float) -> float:
        return max(speed.load, compute) if workers else speed.load + compute

    def embedding(n_images: int, times: int) -> float:
        n = n_images / speed.n_images  # batches
        if speed.front:
            return n * (with_data(speed.front) + times * speed.embed) if times else 0.0
        return n * times * with_data(speed.embed)

    stages = list(speed.of_stages.values()) or [(speed.step, epochs)]
    if speed.front:
        first = n_views(recipe) * amounts.n_train / speed.n_images * with_data(speed.front)
        training = first + sum(n * amounts.n_batches * step for step, n in stages)
    else:
        training = sum(n * amounts.n_batches * with_data(step) for step, n in stages)
    if amounts.embeds_train_set:
        training += embedding(amounts.n_train, epochs)
    return {
        "training": training,
        "validation": embedding(amounts.n_val, n_evaluations(recipe)),
        "measuring": embedding(amounts.afterwards.n_measured, 1),
    }


def time_finding(seconds: Mapping[str, float], recipe: Recipe, amounts: Amounts, speed: Speed) -> Finding:
    """Return the note `estimated_time`, with how it was reckoned."""
    parts = " + ".join(f"{name} {as_time(value)}" for name, value in seconds.items() if value)
    at_most = "at most " if recipe.train.early_stopping_patience is not None else ""
    message = f"the run takes {at_most}about {as_time(sum(seconds.values()))}: {parts}"
    stages = ", ".join(f"{name} {as_time(step)}" for name, (step, _) in speed.of_stages.items())
    how = (
        f"{recipe.train.epochs} epochs of {amounts.n_batches:,} batches; per batch of {speed.n_images} images {as_time(speed.load)} to load, "
        f"{as_time(speed.step)} to train{f' ({stages})' if stages else ''}, {as_time(speed.embed)} to embed"
    )
    if speed.front:
        how += f", {as_time(speed.front)} for the frozen part, which runs once for each image and view"
    remedy = "nothing to do: measured on the first batches, beside whatever else this machine was doing; ranking is not counted"
    return Finding("estimated_time", "note", f"{message} ({how})", remedy)
