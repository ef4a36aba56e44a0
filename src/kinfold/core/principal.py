"""Principal components: the directions in which features differ most."""

from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor

from kinfold.errors import ConfigError

WHITEN_FLOOR = 1e-4
"""Smallest variance, as a share of the largest, that whitening divides by: what is below is noise and would be blown up."""

SMALLEST_VARIANCE = 1e-12
"""What whitening divides by at least, where all features are equal."""


def principal_map(x: Float[Tensor, "n f"], dim: int, *, whiten: bool = False) -> tuple[Float[Tensor, "d f"], Float[Tensor, " f"]]:
    """Return the map onto the first principal components, and the mean that belongs to it: y = W (x − mean).

        C = (x − mean)ᵀ (x − mean) / n = V diag(λ) Vᵀ,  W = first `dim` rows of Vᵀ;  whitened: row i divided by √max(λ_i, 1e-4 λ_1)

    Each direction's sign makes its entry of largest size positive, so that equal features give equal weights on any machine.

    Args:
        x: features, one row an image; computed in float64.
        dim: number of components, at most f; beyond the rank of the features, directions of no variance follow.
        whiten: give every component the same variance.

    Raises:
        ConfigError: `dim` is not between 1 and f, or there are fewer than 2 rows.

    Example:
        >>> weight, mean = principal_map(torch.tensor([[0.0, 1.0], [4.0, 1.0]]), 1)
        >>> weight.tolist(), mean.tolist()
        ([[1.0, 0.0]], [2.0, 1.0])
    """
    n, f = x.shape
    if not 1 <= dim <= f or n < 2:
        raise ConfigError(f"{dim} principal components of {n} images with {f} features: at most {f} of at least 2 images.")
    wide = x.detach().double()
    mean = wide.mean(dim=0)
    centred = wide - mean
    variance, vectors = cast(tuple[Tensor, Tensor], torch.linalg.eigh(centred.T @ centred / n))  # pyright: ignore[reportUnknownMemberType]
    order = variance.argsort(descending=True)[:dim]
    weight, variance = vectors[:, order].T, variance[order]
    largest = weight.gather(1, weight.abs().argmax(dim=1, keepdim=True))
    weight = weight * torch.where(largest < 0, -1.0, 1.0)
    if whiten:
        floor = (WHITEN_FLOOR * variance[0]).clamp_min(SMALLEST_VARIANCE)
        weight = weight / variance.clamp_min(floor).sqrt()[:, None]
    return weight.to(x.dtype), mean.to(x.dtype)
