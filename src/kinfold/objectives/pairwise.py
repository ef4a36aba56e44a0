"""A pair loss on the batch against itself, with optional mining."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kinfold.core.pairs import pairs_from_labels, without_same_item
from kinfold.core.similarity import cosine
from kinfold.objectives.base import Objective
from kinfold.records import Embedded, Loss, Losses, Miner, Pairs, Similarity


def pairwise_loss(
    loss: Loss,
    embedding: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    item: Int[Tensor, " n"],
    *,
    similarity: Similarity = cosine,
    miner: Miner | None = None,
) -> Float[Tensor, ""]:
    """Return the loss of a batch against itself: L(sim(x, x), same class or not), an image never being its own pair.

    Args:
        loss: a pair loss, hyperparameters bound.
        embedding: the batch.
        label: class numbers.
        item: image numbers; rows of one image (and the diagonal) are no pair.
        similarity: larger = more alike.
        miner: keeps the pairs worth training on; it sees the similarities detached.

    Example:
        >>> import torch
        >>> from kinfold.losses import contrastive
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> float(pairwise_loss(contrastive, x, torch.tensor([0, 1]), torch.tensor([0, 1])))
        0.0
    """
    sim = similarity(embedding, embedding)
    return mined_loss(loss, sim, without_same_item(pairs_from_labels(label, label), item, item), miner=miner)


def mined_loss(loss: Loss, sim: Float[Tensor, "n m"], pairs: Pairs, *, miner: Miner | None = None) -> Float[Tensor, ""]:
    """Return the loss of the pairs that the miner keeps; it sees the similarities detached."""
    return loss(sim, pairs if miner is None else miner(sim.detach(), pairs))


def active_pairs(
    loss: Loss,
    embedding: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    item: Int[Tensor, " n"],
    *,
    similarity: Similarity = cosine,
    miner: Miner | None = None,
) -> tuple[float, float]:
    """Return the shares of positive and of negative pairs that teach something: those with dL/ds_ij ≠ 0, L being `pairwise_loss`.

    Pairs that mining left out, and those beyond their margin, teach nothing. (i, j) and (j, i) are two pairs, as a loss may take
    them apart; the shares are of all pairs there are before mining. A pick or miner that draws finds its generators as they were.

    Args:
        loss: as for `pairwise_loss`, like everything else.
        embedding: the batch; no gradient reaches it.
        label: class numbers.
        item: image numbers.
        similarity: larger = more alike.
        miner: keeps the pairs worth training on.

    Returns:
        Two numbers in [0, 1]; nan where there is no such pair.

    Example:
        >>> from kinfold.losses import contrastive
        >>> x = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]])
        >>> active_pairs(contrastive, x, torch.tensor([0, 0, 1]), torch.arange(3))
        (1.0, 0.0)
    """
    pairs = without_same_item(pairs_from_labels(label, label), item, item)
    with _generators_kept(loss, miner, device=embedding.device), torch.enable_grad():
        sim = similarity(embedding.detach(), embedding.detach()).detach().requires_grad_()
        value = mined_loss(loss, sim, pairs, miner=miner)
        has_graph = value.requires_grad  # a loss may answer a batch without pairs with a constant
        gradient = torch.autograd.grad(value, sim, materialize_grads=True)[0] if has_graph else torch.zeros_like(sim)
    return _share(gradient != 0, pairs.positive), _share(gradient != 0, pairs.negative)


def _share(active: Bool[Tensor, "n n"], pairs: Bool[Tensor, "n n"]) -> float:
    return float(active[pairs].float().mean())


@contextmanager
def _generators_kept(*functions: Callable[..., Any] | None, device: torch.device) -> Iterator[None]:
    """Put torch's generators, and those bound to the functions, back to where they were."""
    bound = [(generator, generator.get_state()) for function in functions for generator in _bound_generators(function)]
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            for generator, state in bound:
                generator.set_state(state)


def _bound_generators(function: Callable[..., Any] | None) -> list[torch.Generator]:
    """Return the generators bound to a function by `partial`, however deep."""
    if isinstance(function, torch.Generator):
        return [function]
    if not isinstance(function, partial):
        return []
    return [g for each in (function.func, *function.args, *function.keywords.values()) for g in _bound_generators(each)]


class Pairwise(Objective):
    """Any pair loss between the images of a batch; see `pairwise_loss`. It learns nothing itself.

    Args:
        loss: a function `(sim, pairs) -> scalar` of `kinfold.losses`; bind hyperparameters with `functools.partial`.
        similarity: larger = more alike; cosine by default.
        miner: a function `(sim, pairs) -> pairs` of `kinfold.core.mining`.

    Example:
        >>> from kinfold.losses import multi_similarity
        >>> from kinfold.core.mining import multi_similarity_mining
        >>> objective = Pairwise(multi_similarity, miner=multi_similarity_mining)
    """

    def __init__(self, loss: Loss, *, similarity: Similarity = cosine, miner: Miner | None = None):
        super().__init__()
        self.loss, self.similarity, self.miner = loss, similarity, miner

    def forward(self, batch: Embedded, phase: str = "main") -> Losses:
        """Return one term, `pairs`."""
        del phase  # there is one
        return self.terms(batch.embedding, batch.label, batch.item)

    def terms(self, embedding: Float[Tensor, "n d"], label: Int[Tensor, " n"], item: Int[Tensor, " n"]) -> Losses:
        """Return the loss of any embeddings against themselves."""
        value = pairwise_loss(self.loss, embedding, label, item, similarity=self.similarity, miner=self.miner)
        return Losses({"pairs": value})

    def on_pairs(self, sim: Float[Tensor, "n m"], pairs: Pairs) -> Losses:
        """Return the loss of any similarities, mining included."""
        return Losses({"pairs": mined_loss(self.loss, sim, pairs, miner=self.miner)})

    def health(self, batch: Embedded) -> dict[str, float]:
        """Return `active_positive` and `active_negative`, see `active_pairs`."""
        how = {"similarity": self.similarity, "miner": self.miner}
        positive, negative = active_pairs(self.loss, batch.embedding, batch.label, batch.item, **how)
        return {"active_positive": positive, "active_negative": negative}
