"""How a batch of embeddings is spread: measures that are defined, and never raise, on any batch."""

import math
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.pairs import pairs_from_labels, without_same_item
from kinfold.core.reduce import at_least_float32, normalise
from kinfold.core.similarity import cosine
from kinfold.records import Pairs


def effective_rank(x: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """Return how many directions the embeddings really use, counted softly.

        exp(H(p)),  p_i = σ_i / Σ σ,  H(p) = −Σ p_i log p_i

    with σ the singular values of the unit rows minus their mean, so that a direction shared by all rows does not count. k directions
    of equal spread give k. Singular values not above ε‖X‖ (ε: precision of the embeddings' type, ‖X‖ ≤ √n) are rounding and count
    as 0. The paper takes any matrix; unit rows and centring are ours.

    Args:
        x: embeddings, normalised here.

    Returns:
        A value in [1, min(n − 1, d)]; 1 where all rows are equal; nan for fewer than 2 rows, or entries that are not finite.

    Example:
        >>> effective_rank(torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]))
        tensor(2.)

    Reference:
        Roy & Vetterli, The Effective Rank: A Measure of Effective Dimensionality, EUSIPCO 2007.
    """
    unit = normalise(at_least_float32(x.detach()))
    if len(unit) < 2 or unit.shape[1] == 0 or not bool(torch.isfinite(unit).all()):
        return unit.new_tensor(math.nan)
    values = cast(Tensor, torch.linalg.svdvals(unit - unit.mean(dim=0)))  # pyright: ignore[reportUnknownMemberType]
    spread = torch.where(values > torch.finfo(x.dtype).eps * math.sqrt(len(unit)), values, 0.0)
    total = spread.sum()
    if not total > 0:
        return torch.ones_like(total)
    share = spread / total
    return (-torch.xlogy(share, share).sum()).exp()


def alignment(x: Float[Tensor, "n d"], label: Int[Tensor, " n"], item: Int[Tensor, " n"] | None = None) -> Float[Tensor, ""]:
    """Return how far images of one class lie apart: the mean squared distance of positive pairs of unit rows.

        mean over positive pairs of ‖u_i − u_j‖²  (= 2 − 2 cos)

    Args:
        x: embeddings, normalised here.
        label: class numbers.
        item: image numbers; views of one image are no pair. `None`: every row is an image of its own.

    Returns:
        A value in [0, 4], smaller = tighter classes; nan without a positive pair.

    Example:
        >>> alignment(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0, 1]))
        tensor(2.)

    Reference:
        Wang & Isola, Understanding Contrastive Representation Learning through Alignment and Uniformity on the Hypersphere, ICML 2020.
    """
    return _square_distances(x.detach())[_pairs(label, item).positive].mean()


def uniformity(x: Float[Tensor, "n d"]) -> Float[Tensor, ""]:
    """Return how evenly the embeddings cover the sphere.

        log of the mean over pairs i < j of exp(−2 ‖u_i − u_j‖²)

    Args:
        x: embeddings, normalised here.

    Returns:
        A value in [−8, 0], smaller = more even: 0 where all rows are equal, about −4 for random directions in many dimensions;
        nan for fewer than 2 rows.

    Example:
        >>> uniformity(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        tensor(-4.)

    Reference:
        Wang & Isola, as for `alignment`; their t is 2.
    """
    row, column = torch.triu_indices(len(x), len(x), offset=1, device=x.device)
    return (-2.0 * _square_distances(x.detach())[row, column]).exp().mean().log()


@dataclass(frozen=True)
class SimilarityGap:
    """Mean cosines of the pairs of a batch.

    Attributes:
        positive: of two images of one class, in [−1, 1]; nan where there are none.
        negative: of two images of different classes, in [−1, 1]; nan where there are none.
    """

    positive: Float[Tensor, ""]
    negative: Float[Tensor, ""]

    @property
    def gap(self) -> Float[Tensor, ""]:
        """By how much images of one class are more alike, in [−2, 2]."""
        return self.positive - self.negative


def similarity_gap(x: Float[Tensor, "n d"], label: Int[Tensor, " n"], item: Int[Tensor, " n"] | None = None) -> SimilarityGap:
    """Return the mean cosine of positive and of negative pairs: mean over P of s_ij, and over N; the gap is their difference.

    Args:
        x: embeddings, of any length.
        label: class numbers.
        item: image numbers; views of one image are no pair. `None`: every row is an image of its own.

    Example:
        >>> similarity_gap(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0, 1])).gap
        tensor(1.)
    """
    sim, pairs = cosine(x.detach(), x.detach()), _pairs(label, item)
    return SimilarityGap(sim[pairs.positive].mean(), sim[pairs.negative].mean())


def _pairs(label: Int[Tensor, " n"], item: Int[Tensor, " n"] | None) -> Pairs:
    own = torch.arange(len(label), device=label.device) if item is None else item
    return without_same_item(pairs_from_labels(label, label), own, own)


def _square_distances(x: Float[Tensor, "n d"]) -> Float[Tensor, "n n"]:
    """Return ‖u_i − u_j‖² of the normalised rows, of which zero rows are points at the origin."""
    square = normalise(at_least_float32(x)).square().sum(dim=1)
    return (square[:, None] + square[None, :] - 2.0 * cosine(x, x)).clamp(min=0.0)
