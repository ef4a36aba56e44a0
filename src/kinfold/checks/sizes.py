"""How much memory and disk a run will take, from a few measured steps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch import Tensor, nn

from kinfold.checks.cost import Afterwards, Amounts
from kinfold.checks.finding import Finding
from kinfold.checks.memory import StepMemory, bytes_of_tensors
from kinfold.checks.rehearsal import Rehearsal
from kinfold.checks.settings import n_views
from kinfold.checks.units import as_size
from kinfold.evaluation.memory import bytes_of
from kinfold.recipe import Recipe

PREFETCHED = 2
"""Batches that each worker reads ahead, torch's default."""


@dataclass(frozen=True)
class Sizes:
    """Bytes.

    Attributes:
        weights: parameters and buffers of model and objective.
        gradients: of what trains.
        optimizer: what the optimisers remember.
        images: of the batches that lie in memory at once.
        activations: kept for the backward pass.
        checkpoint: one checkpoint on the disk.
        model: the finished model on the disk.
        embedding: of one image.
        value: what is kept of one view of one image, where a frozen part's outputs are; else 0.
    """

    weights: int
    gradients: int
    optimizer: int
    images: int
    activations: int
    checkpoint: int
    model: int
    embedding: int
    value: int

    @property
    def training(self) -> int:
        """All that training needs in memory at once, besides the libraries."""
        return self.weights + self.gradients + self.optimizer + self.images + self.activations


def sizes_of(rehearsal: Rehearsal, recipe: Recipe, memory: StepMemory, *, image: Tensor, fed: Tensor) -> Sizes:
    """Return what a rehearsal that has made an update takes.

    Args:
        rehearsal: model, objective and optimisers.
        recipe: workers, and whether kept values are halved.
        memory: of a step.
        image: the images of a batch.
        fed: what the model trains on: the same, or the frozen part's outputs.
    """
    optimizers = rehearsal.session.optimizers
    state = [tensor for each in optimizers.torch_optimizers for tensor in _tensors(each.state.values())]
    trained = [*rehearsal.model.state_dict().values(), *rehearsal.objective.state_dict().values()]
    value = 0 if rehearsal.front is None else bytes_of_tensors([fed]) // len(fed)
    return Sizes(
        weights=bytes_of_tensors(weights_of(rehearsal.embedder, rehearsal.objective)),
        gradients=bytes_of_tensors(p for p in optimizers.parameters if p.requires_grad),
        optimizer=bytes_of_tensors(state),
        images=bytes_of_tensors([fed]) + PREFETCHED * recipe.batches.workers * bytes_of_tensors([image]),
        activations=memory.saved,
        checkpoint=bytes_of_tensors([*trained, *state]),
        model=bytes_of_tensors(rehearsal.embedder.state_dict().values()),
        embedding=4 * rehearsal.embedder.dim,
        value=value // 2 if recipe.cache.half else value,
    )


def weights_of(*modules: nn.Module) -> list[Tensor]:
    """Return all parameters and buffers."""
    return [tensor for module in modules for tensor in (*module.parameters(), *module.buffers())]


def memory_finding(sizes: Sizes, memory: StepMemory, afterwards: Afterwards) -> Finding:
    """Return the note `estimated_memory`."""
    parts = ("weights", "gradients", "optimizer", "images", "activations")
    told = ", ".join(f"{name} {as_size(getattr(sizes, name))}" for name in parts)
    message = f"training takes about {as_size(sizes.training)} besides the libraries: {told}"
    if memory.rise is not None:
        message += f"; memory in use rose by {as_size(memory.rise)} in the first step"
    if afterwards.n_measured:
        message += f"; blocks of similarities take up to {as_size(bytes_of(afterwards.memory))} (evaluation.memory)"
    remedy = "nothing to do; if it is too much, lower batches.batch_size"
    return Finding("estimated_memory", "note", message, remedy)


def disk_finding(sizes: Sizes, recipe: Recipe, amounts: Amounts) -> Finding:
    """Return the note `estimated_disk`."""
    parts = {
        "checkpoints": sizes.checkpoint * (2 if amounts.n_val else 1),
        "model": sizes.model,
        "embeddings": sizes.embedding * amounts.afterwards.n_measured * amounts.afterwards.keeps_embeddings,
    }
    told = ", ".join(f"{name} {as_size(value)}" for name, value in parts.items() if value)
    message = f"the run folder takes about {as_size(sum(parts.values()))}: {told}"
    if sizes.value:
        n = n_views(recipe) * amounts.n_train + amounts.n_val + amounts.afterwards.n_measured
        message += f"; kept outputs of the frozen part take {as_size(sizes.value * n)} in the cache folder"
    remedy = f"nothing to do: have {as_size(sizes.checkpoint)} more free while a checkpoint is written"
    return Finding("estimated_disk", "note", message, remedy)


def _tensors(values: Iterable[object]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, dict):
            yield from _tensors(value.values())
