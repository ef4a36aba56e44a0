"""A pair loss on the batch against itself, with optional mining."""

from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.pairs import pairs_from_labels, without_same_item
from kinfold.core.similarity import cosine
from kinfold.objectives.base import Objective
from kinfold.records import Embedded, Loss, Losses, Miner, Similarity


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
    pairs = without_same_item(pairs_from_labels(label, label), item, item)
    if miner is not None:
        pairs = miner(sim.detach(), pairs)
    return loss(sim, pairs)


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
        value = pairwise_loss(self.loss, batch.embedding, batch.label, batch.item, similarity=self.similarity, miner=self.miner)
        return Losses({"pairs": value})
