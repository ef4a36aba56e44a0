"""Numbers about classes that were made up: are they themselves, are they new, and do they have a width?"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.core.divergence import class_statistics
from kinfold.core.pairs import pairs_from_labels
from kinfold.core.reduce import normalise
from kinfold.core.similarity import cosine
from kinfold.records import Similarity


class OwnSimilarity(NamedTuple):
    """How alike made-up vectors are to the proxy of their own class.

    Attributes:
        mean: over a class's vectors, then over classes.
        minimum: of a class's vectors, mean over classes.
    """

    mean: float
    minimum: float


class RealSimilarity(NamedTuple):
    """How alike the proxies of made-up classes are to those of real classes.

    Attributes:
        mean: over all pairs.
        maximum: of a made-up class over the real ones, mean over made-up classes.
        nearest: (n_novel,), the number of the nearest real class.
    """

    mean: float
    maximum: float
    nearest: Int[Tensor, " n"]


def own_similarity(
    generated: Float[Tensor, "n d"], label: Int[Tensor, " n"], proxies: Float[Tensor, "c d"], *, similarity: Similarity = cosine
) -> OwnSimilarity:
    """Return how alike made-up vectors are to their own class's proxy (for cosine in [-1, 1]).

        mean over classes i of mean over vectors k of s(x_ik, p_i),    mean over i of min over k of s(x_ik, p_i)

    Args:
        generated: the vectors.
        label: row of each vector's proxy.
        proxies: of the made-up classes.
        similarity: larger = more alike.

    Returns:
        nan for no vector.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> own_similarity(x, torch.tensor([0, 0, 1]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        OwnSimilarity(mean=0.75, minimum=0.5)
    """
    own = pairs_from_labels(label, torch.arange(len(proxies), device=label.device)).positive
    sim = similarity(generated.detach(), proxies.detach())[own]
    _, code, count = distinct(label)
    mean = sim.new_zeros(len(count)).index_add(0, code, sim) / count
    minimum = sim.new_full((len(count),), torch.inf).scatter_reduce(0, code, sim, "amin")
    return OwnSimilarity(float(mean.mean()), float(minimum.mean()))


def real_similarity(
    novel_proxies: Float[Tensor, "n d"], real_proxies: Float[Tensor, "c d"], *, similarity: Similarity = cosine
) -> RealSimilarity:
    """Return how alike the proxies of made-up classes are to those of real ones.

        mean over i and j of s(p_j, p~_i),    mean over i of max over j of s(p_j, p~_i)

    Example:
        >>> real_similarity(torch.tensor([[0.6, 0.8]]), torch.eye(2)).nearest
        tensor([1])
    """
    sim = similarity(novel_proxies.detach(), real_proxies.detach())
    largest, nearest = sim.max(dim=1)
    return RealSimilarity(float(sim.mean()), float(largest.mean()), nearest)


def within_variance(x: Float[Tensor, "n d"], label: Int[Tensor, " n"]) -> Float[Tensor, " c"]:
    """Return the variance of unit vectors within each class that has at least two: mean ‖u − mean u‖² · n / (n − 1), unbiased.

    Args:
        x: vectors of any length.
        label: their classes.

    Returns:
        One value a class, in the order of class numbers.

    Example:
        >>> within_variance(torch.eye(2), torch.tensor([0, 0]))
        tensor([1.])
    """
    _, variance = class_statistics(normalise(x.detach()), label)
    count = distinct(label)[2]
    n = count[count >= 2]
    return variance.sum(dim=1) * n / (n - 1)
