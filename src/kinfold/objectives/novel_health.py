"""What training logs about generated classes."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.novelty import own_similarity, real_similarity, within_variance
from kinfold.records import Embedded, Similarity

LOOKED_AT = 256
"""Generated classes, spread evenly, that the numbers are about: more say no more, and cost time."""

VECTORS_LOOKED_AT = 4
"""Vectors of each of them."""


def some_classes(n: int) -> Int[Tensor, " k"]:
    """Return the numbers of up to 256 of n classes, spread evenly.

    Example:
        >>> some_classes(3)
        tensor([0, 1, 2])
    """
    return torch.linspace(0, n - 1, min(n, LOOKED_AT), dtype=torch.float64).round().long()


def variance_ratio(generated: Float[Tensor, "n d"], label: Int[Tensor, " n"], batch: Embedded) -> float:
    """Return the variance within generated classes as a multiple of that within the batch's; nan where no class has two images."""
    real = within_variance(batch.embedding, batch.label)
    return float(within_variance(generated, label).mean() / real.mean())


def proxy_numbers(
    generated: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    own: Float[Tensor, "k d"],
    real: Float[Tensor, "c d"] | None,
    *,
    similarity: Similarity,
) -> dict[str, float]:
    """Return `novel_own_similarity` and its minimum and, where `own` are no real proxies, `novel_real_similarity` and its maximum.

    Args:
        generated: vectors.
        label: row of each vector's proxy in `own`.
        own: proxies of the generated classes.
        real: proxies of the real classes; `None` where `own` are some of these.
        similarity: of the host.
    """
    to_own = own_similarity(generated, label, own, similarity=similarity)
    found = {"novel_own_similarity": to_own.mean, "novel_own_similarity_min": to_own.minimum}
    if real is not None:
        to_real = real_similarity(own, real, similarity=similarity)
        found |= {"novel_real_similarity": to_real.mean, "novel_real_similarity_max": to_real.maximum}
    return found
