"""Divergences between generated and real embeddings: what keeps a generator within the space that real classes fill."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.core.reduce import at_least_float32, normalise
from kinfold.core.similarity import negative_squared_euclidean

EPS = 1e-6
"""Added to variances of unit vectors' entries; these are about 1 / d: 2e-3 for 512 numbers."""

Divergence = Callable[..., Tensor]
"""(generated, generated_label, real, real_label) → scalar; a keyword `generator` is handed to those that draw."""


def gaussian_kl(
    mean: Float[Tensor, "*n d"],
    variance: Float[Tensor, "*n d"],
    other_mean: Float[Tensor, "*m d"],
    other_variance: Float[Tensor, "*m d"],
) -> Float[Tensor, "*k"]:
    """Return KL(N(mean, variance) ‖ N(other_mean, other_variance)) of diagonal Gaussians, divided by the number of dimensions.

        1/(2d) Σ_k [ v_k / w_k + (m_k − n_k)² / w_k − 1 + log(w_k / v_k) ]

    Args:
        mean: m; leading dimensions broadcast.
        variance: v, above 0.
        other_mean: n.
        other_variance: w, above 0.

    Returns:
        In nats a dimension, 0 or more; not symmetric.

    Example:
        >>> one, two = torch.ones(3), 2 * torch.ones(3)
        >>> round(float(gaussian_kl(one, one, one, two)), 4), round(float(gaussian_kl(one, two, one, one)), 4)
        (0.0966, 0.1534)
    """
    ratio = variance / other_variance
    return 0.5 * (ratio + (mean - other_mean).square() / other_variance - 1.0 - ratio.log()).mean(dim=-1)


def gauss_kl(
    generated: Float[Tensor, "n d"],
    generated_label: Int[Tensor, " n"],
    real: Float[Tensor, "m d"],
    real_label: Int[Tensor, " m"],
    *,
    eps: float = EPS,
) -> Float[Tensor, ""]:
    """Compare one diagonal Gaussian of all generated vectors with one of all real vectors: KL(generated ‖ real) a dimension.

    Reconstructed: the paper's text names a divergence and keeps no formula. This one is in closed form and nearly free. It sees
    the pooled mean and variance alone: with a metric loss that spreads the classes apart, generated classes must come to lie between real ones.

    Args:
        generated: unit vectors.
        generated_label: not used.
        real: unit vectors, detached by the caller.
        real_label: not used.
        eps: added to both variances.

    Returns:
        0 with a graph where a side has fewer than 2 vectors, which have no variance.

    Example:
        >>> x, label = torch.eye(4), torch.arange(4)
        >>> float(gauss_kl(x, label, x, label))
        0.0
    """
    del generated_label, real_label
    x, y = at_least_float32(generated), at_least_float32(real)
    if min(len(x), len(y)) < 2:
        return 0.0 * x.sum()
    return gaussian_kl(x.mean(dim=0), x.var(dim=0, correction=0) + eps, y.mean(dim=0), y.var(dim=0, correction=0) + eps)


def classwise_kl(
    generated: Float[Tensor, "n d"],
    generated_label: Int[Tensor, " n"],
    real: Float[Tensor, "m d"],
    real_label: Int[Tensor, " m"],
    *,
    eps: float = 1e-4,
) -> Float[Tensor, ""]:
    """Compare each generated class with each real class: the mean KL(generated class ‖ real class) a dimension.

    Reconstructed. Needs several vectors of each class; classes with one vector are left out. Alone it pulls every class to the
    centre of all real ones.

    Args:
        generated: unit vectors.
        generated_label: their classes.
        real: unit vectors, detached by the caller.
        real_label: their classes.
        eps: added to variances: those of a few vectors are small by chance.

    Returns:
        0 with a graph where a side has no class with 2 vectors.
    """
    x_mean, x_variance = class_statistics(at_least_float32(generated), generated_label)
    y_mean, y_variance = class_statistics(at_least_float32(real), real_label)
    if not len(x_mean) or not len(y_mean):
        return 0.0 * at_least_float32(generated).sum()
    return gaussian_kl(x_mean[:, None], x_variance[:, None] + eps, y_mean, y_variance + eps).mean()


def class_statistics(
    x: Float[Tensor, "n d"], label: Int[Tensor, " n"], *, least: int = 2
) -> tuple[Float[Tensor, "c d"], Float[Tensor, "c d"]]:
    """Return mean and variance (divided by the number of rows) of each class with at least so many rows, in the order of class numbers.

    Example:
        >>> mean, variance = class_statistics(torch.tensor([[0.0], [2.0], [5.0]]), torch.tensor([3, 3, 4]))
        >>> mean.tolist(), variance.tolist()
        ([[1.0]], [[1.0]])
    """
    _, code, count = distinct(label)
    n = count.to(x.dtype)[:, None]
    mean = x.new_zeros(len(count), x.shape[1]).index_add(0, code, x) / n
    variance = x.new_zeros(len(count), x.shape[1]).index_add(0, code, (x - mean[code]).square()) / n
    return mean[count >= least], variance[count >= least]


def mmd(
    generated: Float[Tensor, "n d"],
    generated_label: Int[Tensor, " n"],
    real: Float[Tensor, "m d"],
    real_label: Int[Tensor, " m"],
    *,
    widths: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0),
) -> Float[Tensor, ""]:
    """Compare all generated with all real vectors by the maximum mean discrepancy, squared, with Gaussian kernels.

        mean k(x, x') + mean k(y, y') − 2 mean k(x, y),    k(a, b) = 1/|S| Σ_{s in S} exp(−‖a − b‖² / (2 s²))

    Reconstructed. Means are over pairs of different vectors on the two sides alone (the unbiased estimate: it may fall below 0).
    It sees correlations that `gauss_kl` ignores, and costs a product of the two batches.

    Args:
        generated: unit vectors.
        generated_label: not used.
        real: unit vectors, detached by the caller.
        real_label: not used.
        widths: S, in units of the distance; unit vectors are at most 2 apart.

    Returns:
        In [-2, 2]; 0 with a graph where a side has fewer than 2 vectors.

    Reference:
        Gretton et al., A Kernel Two-Sample Test, JMLR 2012, eq. 3.
    """
    del generated_label, real_label
    x, y = at_least_float32(generated), at_least_float32(real)
    if min(len(x), len(y)) < 2:
        return 0.0 * x.sum()
    return _within(x, widths) + _within(y, widths) - 2.0 * _kernel(x, y, widths).mean()


def _kernel(x: Float[Tensor, "n d"], y: Float[Tensor, "m d"], widths: tuple[float, ...]) -> Float[Tensor, "n m"]:
    square = -negative_squared_euclidean(x, y)
    return torch.stack([(-square / (2.0 * width**2)).exp() for width in widths]).mean(dim=0)


def _within(x: Float[Tensor, "n d"], widths: tuple[float, ...]) -> Float[Tensor, ""]:
    """Return the mean kernel of two different rows; a row with itself has 1."""
    return (_kernel(x, x, widths).sum() - len(x)) / (len(x) * (len(x) - 1))


def sliced_wasserstein(
    generated: Float[Tensor, "n d"],
    generated_label: Int[Tensor, " n"],
    real: Float[Tensor, "m d"],
    real_label: Int[Tensor, " m"],
    *,
    n_slices: int = 128,
    generator: torch.Generator | None = None,
) -> Float[Tensor, ""]:
    """Compare all generated with all real vectors along random directions: the mean squared distance of their quantiles, times d.

        d · mean over directions w of  ∫ ( F⁻¹_{x·w}(q) − F⁻¹_{y·w}(q) )² dq

    Reconstructed. The factor d makes a shift of all vectors by a distance t cost t², whatever the number of dimensions. Sides of
    different numbers of vectors are compared at the quantiles of the smaller one.

    Args:
        generated: unit vectors.
        generated_label: not used.
        real: unit vectors, detached by the caller.
        real_label: not used.
        n_slices: number of directions.
        generator: source of the directions, on the CPU; `None` uses torch's own.

    Returns:
        0 or more; 0 with a graph where a side is empty.

    Reference:
        Bonneel et al., Sliced and Radon Wasserstein Barycenters of Measures, JMIV 2015.
    """
    del generated_label, real_label
    x, y = at_least_float32(generated), at_least_float32(real)
    if min(len(x), len(y)) < 1:
        return 0.0 * x.sum()
    direction = torch.randn(x.shape[1], n_slices, generator=generator).to(x.device, x.dtype)
    direction = normalise(direction.T).T
    n = min(len(x), len(y))
    one, two = _quantiles(x @ direction, n), _quantiles(y @ direction, n)
    return x.shape[1] * (one - two).square().mean()


def _quantiles(x: Float[Tensor, "n s"], n: int) -> Float[Tensor, "k s"]:
    """Return `n` evenly spaced order statistics of each column."""
    ordered = x.sort(dim=0).values
    return ordered if len(ordered) == n else ordered[((torch.arange(n, device=x.device) + 0.5) * len(ordered) / n).long()]


DIVERGENCES: dict[str, Divergence] = {
    "classwise_kl": classwise_kl,
    "gauss_kl": gauss_kl,
    "mmd": mmd,
    "sliced_wasserstein": sliced_wasserstein,
}
