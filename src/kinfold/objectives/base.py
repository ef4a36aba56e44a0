"""Objective: what is minimised, with everything it learns and remembers."""

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Protocol

from jaxtyping import Float, Int
from torch import Tensor, nn

from kinfold.core.health import alignment, effective_rank, similarity_gap, uniformity
from kinfold.records import Embedded, Losses, Pairs, ParamGroup, Similarity, TrainSet

HEALTH_ROWS = 256
"""Rows of a batch that `embedding_health` looks at: the spread of 256 images is known well enough, and costs little."""


class Objective(nn.Module, ABC):
    """What training minimises; it owns proxies, memories and whatever else is learnt beside the model.

    A subclass is final. It answers four questions: what is minimised now (`forward`), what is learnt and how fast
    (`parameter_groups`), what is recomputed over the training set (`on_epoch_start`), what is tidied after an update
    (`on_step_end`); and, if it can, how it is doing (`health`). All memory is a parameter or a buffer, so that `state_dict` is
    complete and resuming is exact.

    Attributes:
        phases: how many updates one batch gives, by name. A phase routes its gradients by `detach`, in `forward`, and the
            phases train disjoint parameters. With gradient accumulation all phases see the parameters of the window's start.
        stages: the values that `stage` takes; a configuration may name an optimiser and a schedule for each.
        n_classes: number of training classes the objective was made for; `None` means any.
        dim: size of the embedding it was made for; `None` means any.
    """

    phases: tuple[str, ...] = ("main",)
    stages: tuple[str, ...] = ("main",)
    n_classes: int | None = None
    dim: int | None = None

    @property
    def stage(self) -> str:
        """The stage of training; when it changes after `on_epoch_start`, optimisers and schedules are built anew."""
        return "main"

    @abstractmethod
    def forward(self, batch: Embedded, phase: str = "main") -> Losses:
        """Return the weighted terms of this phase's loss."""

    def describe(self) -> dict[str, Any]:
        """Return what tells this objective from another one, in plain values: a run goes on only with the same."""
        own = {name: plain(value) for name, value in vars(self).items() if not name.startswith("_") and name != "training"}
        shapes = {name: list(tensor.shape) for name, tensor in self.state_dict().items()}
        return {"class": type(self).__qualname__, "settings": own, "tensors": shapes}

    def parameter_groups(self) -> list[ParamGroup]:
        """Return what the objective learns, by group; every parameter must be in one group."""
        own = list(self.parameters())
        return [ParamGroup("objective", own)] if own else []

    def on_epoch_start(self, epoch: int, train_set: TrainSet) -> None:
        """Recompute what depends on the whole training set; `train_set.embed()` costs one pass. Not called on resuming inside an epoch."""

    def on_step_end(self, step: int) -> None:
        """Tidy up after update number `step` (counted from 1): renormalise, enqueue, refresh."""

    def health(self, batch: Embedded) -> dict[str, float]:
        """Return numbers that tell how training is doing on this batch; the log has them under `health/`.

        Asked for once per row of the log, after `on_step_end`, with the batch detached. It changes nothing: no parameter, no
        buffer, no generator of its own. Numbers that are not finite are left out of the log.
        """
        del batch
        return {}

    def snapshot(self) -> dict[str, Any]:
        """Return what is worth keeping of what the objective has found, in plain values; the log has it once an epoch, at its end."""
        return {}


class ProxyObjective(Protocol):
    """What an objective with one proxy per class offers to methods that build on it, such as hierarchical proxies.

    Attributes:
        n_classes: number of training classes; their proxies are the columns 0 to n_classes − 1.
        dim: size of the embedding.
    """

    @property
    def n_classes(self) -> int | None:
        """Number of training classes."""
        ...

    @property
    def dim(self) -> int | None:
        """Size of the embedding."""
        ...

    @property
    def similarity(self) -> Similarity:
        """How images are compared with proxies; larger = more alike."""
        ...

    def class_proxies(self) -> Float[Tensor, "c d"]:
        """Return one vector for each class: its proxy, or the mean of several."""
        ...

    def terms(
        self, embedding: Float[Tensor, "n d"], label: Int[Tensor, " n"], *, extra_proxies: Float[Tensor, "e d"] | None = None
    ) -> Losses:
        """Return the loss of any embeddings against the own proxies, and against `extra_proxies` whose labels count on."""
        ...

    def against(
        self, embedding: Float[Tensor, "n d"], label: Int[Tensor, " n"], proxies: Float[Tensor, "k d"]
    ) -> Float[Tensor, ""]:
        """Return the same loss against any other proxies, one for each label from 0 to k − 1."""
        ...

    def parameter_groups(self) -> list[ParamGroup]:
        """Return what it learns."""
        ...

    def health(self, batch: Embedded) -> dict[str, float]:
        """Return numbers about a batch."""
        ...


class PairObjective(Protocol):
    """What an objective on the pairs of a batch offers to methods that build on it, such as generated classes; it has no proxies."""

    @property
    def similarity(self) -> Similarity:
        """How images are compared with each other; larger = more alike."""
        ...

    def terms(self, embedding: Float[Tensor, "n d"], label: Int[Tensor, " n"], item: Int[Tensor, " n"]) -> Losses:
        """Return the loss of any embeddings against themselves; rows of one item are no pair."""
        ...

    def on_pairs(self, sim: Float[Tensor, "n m"], pairs: Pairs) -> Losses:
        """Return the loss of any similarities, mining included."""
        ...

    def parameter_groups(self) -> list[ParamGroup]:
        """Return what it learns."""
        ...

    def health(self, batch: Embedded) -> dict[str, float]:
        """Return numbers about a batch."""
        ...


Host = ProxyObjective | PairObjective
"""What a method can build on."""


def embedding_health(batch: Embedded) -> dict[str, float]:
    """Return what any batch of embeddings tells about training, whatever the objective; see `kinfold.core.health`.

    Computed on the CPU, on the first 256 rows. What is not defined on the batch (it has no positive pair, say) is left out.

    Returns:
        `effective_rank`, `uniformity`, `alignment`, `positive_similarity`, `negative_similarity`, `similarity_gap`.

    Example:
        >>> import torch
        >>> x, label = torch.eye(4), torch.tensor([0, 0, 1, 1])
        >>> found = embedding_health(Embedded(x, x, label, torch.arange(4), torch.zeros(4, dtype=torch.long)))
        >>> round(found["effective_rank"], 3), found["alignment"]
        (3.0, 2.0)
    """
    x, label, item = (each.detach()[:HEALTH_ROWS].cpu() for each in (batch.embedding, batch.label, batch.item))
    sim = similarity_gap(x, label, item)
    found = {
        "effective_rank": effective_rank(x),
        "uniformity": uniformity(x),
        "alignment": alignment(x, label, item),
        "positive_similarity": sim.positive,
        "negative_similarity": sim.negative,
        "similarity_gap": sim.gap,
    }
    numbers = {name: float(value) for name, value in found.items()}
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def plain(value: Any) -> Any:
    """Return a function by its name and bound keywords, a number or text as it is, anything else by its type.

    Example:
        >>> from kinfold.losses import contrastive
        >>> plain(partial(contrastive, negative_threshold=0.2))
        {'function': 'contrastive', 'keywords': {'negative_threshold': 0.2}}
    """
    if isinstance(value, partial):
        return {"function": plain(value.func), "keywords": {name: plain(each) for name, each in value.keywords.items()}}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return getattr(value, "__qualname__", type(value).__qualname__)
