"""How near classes of one kind lie to classes of another: the smallest KL divergence of their Gaussians."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.core.divergence import gaussian_kl
from kinfold.core.reduce import normalise
from kinfold.errors import DataError
from kinfold.evaluation.intervals import bootstrap_interval
from kinfold.evaluation.typed import tensor_of

FLOOR = 1e-5
"""Added to variances of unit vectors' entries: those of a few vectors may be 0."""


@dataclass(frozen=True)
class Alignment:
    """How near the classes of one side lie to those of the other, in nats a dimension; smaller is nearer.

    Attributes:
        forward: mean over the first side's classes of the smallest KL(first ‖ second).
        backward: the same with KL(second ‖ first).
        forward_interval: 95 % bootstrap interval over the first side's classes.
        backward_interval: the same for `backward`.
        n_classes: of the first side, and of the second.
        n_vectors: of each class.
    """

    forward: float
    backward: float
    forward_interval: tuple[float, float]
    backward_interval: tuple[float, float]
    n_classes: tuple[int, int]
    n_vectors: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Side:
    """Classes as diagonal Gaussians of unit vectors.

    Attributes:
        mean: one row a class.
        variance: the same, floor included.
        n_vectors: of each class.
    """

    mean: Float[Tensor, "c d"]
    variance: Float[Tensor, "c d"]
    n_vectors: int


def side_of(x: Float[Tensor, "n d"], label: Int[Tensor, " n"], *, n_vectors: int, seed: int = 0) -> Side:
    """Return the Gaussians of all classes with at least so many vectors, each of exactly so many, drawn.

    As many on both sides: the variance of few vectors is smaller, and a divergence would see the number.

    Args:
        x: vectors of any length.
        label: their classes.
        n_vectors: of each class, at least 2.
        seed: of the draw.

    Raises:
        DataError: no class has so many.
    """
    _, code, count = distinct(label)
    if n_vectors < 2 or not bool((count >= n_vectors).any()):
        largest = int(count.max()) if len(count) else 0
        raise DataError(f"{n_vectors} vectors of each class: at least 2, and no more than the largest class has ({largest}).")
    order = tensor_of(np.random.default_rng(seed).permutation(len(label)))
    unit, code = normalise(x.double())[order], code[order]
    means, variances = list[Tensor](), list[Tensor]()
    for number in range(len(count)):
        rows = unit[code == number][:n_vectors]
        if len(rows) == n_vectors:
            means.append(rows.mean(dim=0))
            variances.append(rows.var(dim=0) + FLOOR)
    return Side(torch.stack(means), torch.stack(variances), n_vectors)


def nearest_kl(one: Side, other: Side, *, itself: bool = False) -> tuple[Float[Tensor, " c"], Float[Tensor, " c"]]:
    """Return for each class of `one` the smallest KL to a class of `other`, and the smallest from one.

    Args:
        one: whose classes are asked.
        other: among whom the nearest is sought.
        itself: both are the same classes: a class is no neighbour of itself.
    """
    forward, backward = list[Tensor](), list[Tensor]()
    for number in range(len(one.mean)):
        mean, variance = one.mean[number], one.variance[number]
        to, back = (
            gaussian_kl(mean, variance, other.mean, other.variance),
            gaussian_kl(other.mean, other.variance, mean, variance),
        )
        if itself:
            to[number] = back[number] = torch.inf
        forward.append(to.min())
        backward.append(back.min())
    return torch.stack(forward), torch.stack(backward)


def alignment(one: Side, other: Side, *, itself: bool = False, seed: int = 0) -> Alignment:
    """Return how near the classes of `one` lie to those of `other`.

        forward = 1/|A| Σ_{a in A} min_{b in B} KL(N_a ‖ N_b) / d,    backward = 1/|A| Σ_{a in A} min_{b in B} KL(N_b ‖ N_a) / d

    KL is not symmetric and the paper does not say which way round it takes it: both are given.

    Args:
        one: A.
        other: B.
        itself: both are the same classes.
        seed: of the bootstrap.

    Reference:
        Lee, Kim, Hong, Kwak, Learning to Generate Novel Classes for Deep Metric Learning, BMVC 2021 (the idea; details are ours).
    """
    forward, backward = nearest_kl(one, other, itself=itself)
    ends = [bootstrap_interval(values, torch.arange(len(values)), seed=seed) for values in (forward, backward)]
    sizes = (len(one.mean), len(other.mean))
    return Alignment(
        float(forward.mean()),
        float(backward.mean()),
        (ends[0].low, ends[0].high),
        (ends[1].low, ends[1].high),
        sizes,
        one.n_vectors,
    )
