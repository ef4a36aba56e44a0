"""A proxy loss on the batch against learned proxies, one per class."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from kinfold.core.pairs import pairs_from_labels
from kinfold.core.proxies import initial_proxies
from kinfold.core.similarity import cosine
from kinfold.errors import ConfigError
from kinfold.objectives.base import Objective
from kinfold.records import Embedded, Loss, Losses, ParamGroup, Similarity


def proxy_loss(
    loss: Loss,
    embedding: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    proxies: Float[Tensor, "c d"],
    *,
    similarity: Similarity = cosine,
) -> Float[Tensor, ""]:
    """Return the loss of a batch against proxies: L(sim(x, p), label == column).

    Args:
        loss: a loss on (sim, pairs), hyperparameters bound.
        embedding: the batch.
        label: class numbers, 0 to c − 1: the column of each row's own proxy.
        proxies: one row per class.
        similarity: larger = more alike.

    Example:
        >>> from kinfold.losses import normalized_softmax
        >>> x = torch.eye(2)
        >>> round(float(proxy_loss(normalized_softmax, x, torch.tensor([0, 1]), x)), 4)
        0.0
    """
    columns = torch.arange(len(proxies), device=label.device)
    return loss(similarity(embedding, proxies), pairs_from_labels(label, columns))


def proxy_similarities(
    embedding: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    proxies: Float[Tensor, "c d"],
    *,
    similarity: Similarity = cosine,
) -> tuple[float, float]:
    """Return the mean similarity of images to their own class's proxy, and to the nearest one of another class.

        mean over i of s(x_i, p_label_i),    mean over i of the largest s(x_i, p_c) with c ≠ label_i

    Args:
        embedding: the batch.
        label: class numbers: the column of each row's own proxy.
        proxies: one row per class.
        similarity: larger = more alike.

    Returns:
        Two similarities; not finite where there is no such proxy.

    Example:
        >>> x = torch.eye(2)
        >>> proxy_similarities(x, torch.tensor([0, 1]), x)
        (1.0, 0.0)
    """
    sim = similarity(embedding.detach(), proxies.detach())
    own = pairs_from_labels(label, torch.arange(len(proxies), device=label.device)).positive
    return float(sim[own].mean()), float(sim.masked_fill(own, -torch.inf).amax(dim=1).mean())


class Proxies(Objective):
    """Any proxy loss with one learned proxy per class; see `proxy_loss`.

    Args:
        loss: a function `(sim, pairs) -> scalar` of `kinfold.losses`; bind hyperparameters with `functools.partial`.
        n_classes: number of training classes.
        dim: size of the embedding.
        similarity: larger = more alike; cosine by default.
        lr_scale: the proxies' learning rate as a multiple of the run's (Proxy Anchor's released code: 100).
        seed: of the proxies' start, N(0, 2 / n_classes) (Kaiming, fan out).

    Example:
        >>> from kinfold.losses import proxy_anchor
        >>> Proxies(proxy_anchor, n_classes=100, dim=64).proxies.shape
        torch.Size([100, 64])
    """

    def __init__(
        self,
        loss: Loss,
        n_classes: int,
        dim: int,
        *,
        similarity: Similarity = cosine,
        lr_scale: float = 100.0,
        seed: int = 0,
    ):
        super().__init__()
        if n_classes < 1 or dim < 1:
            raise ConfigError(f"n_classes = {n_classes} and dim = {dim}: both must be at least 1.")
        self.loss, self.similarity, self.lr_scale, self.n_classes = loss, similarity, lr_scale, n_classes
        self.dim = dim
        self.proxies = nn.Parameter(initial_proxies(n_classes, dim, generator=torch.Generator().manual_seed(seed)))

    def terms(
        self,
        embedding: Float[Tensor, "n d"],
        label: Int[Tensor, " n"],
        *,
        extra_proxies: Float[Tensor, "e d"] | None = None,
    ) -> Losses:
        """Return the loss of any embeddings against the proxies, and against `extra_proxies` whose labels count on from n_classes."""
        proxies = self.proxies if extra_proxies is None else torch.cat([self.proxies, extra_proxies])
        return Losses({"proxies": proxy_loss(self.loss, embedding, label, proxies, similarity=self.similarity)})

    def against(
        self, embedding: Float[Tensor, "n d"], label: Int[Tensor, " n"], proxies: Float[Tensor, "k d"]
    ) -> Float[Tensor, ""]:
        """Return the same loss against any other proxies, one for each label from 0 to k − 1."""
        return proxy_loss(self.loss, embedding, label, proxies, similarity=self.similarity)

    def class_proxies(self) -> Float[Tensor, "c d"]:
        """Return the proxies."""
        return self.proxies

    def forward(self, batch: Embedded, phase: str = "main") -> Losses:
        """Return one term, `proxies`."""
        del phase  # there is one
        return self.terms(batch.embedding, batch.label)

    def health(self, batch: Embedded) -> dict[str, float]:
        """Return `own_proxy_similarity` and `other_proxy_similarity`, see `proxy_similarities`."""
        own, other = proxy_similarities(batch.embedding, batch.label, self.proxies, similarity=self.similarity)
        return {"own_proxy_similarity": own, "other_proxy_similarity": other}

    def parameter_groups(self) -> list[ParamGroup]:
        """Return the group `proxies`."""
        return [ParamGroup("proxies", [self.proxies], lr_scale=self.lr_scale)]
