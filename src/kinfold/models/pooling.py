"""Pooling: one vector per image from the feature map of a trunk."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

GEM_EPS = 1e-6
"""Smallest activation that generalised-mean pooling sees: a power of 0 has no finite gradient."""


class AveragePool(nn.Module):
    """Mean over positions."""

    def forward(self, feature_map: Float[Tensor, "n f h w"]) -> Float[Tensor, "n f"]:
        """Pool each channel."""
        return feature_map.mean(dim=(2, 3))


class MaxPool(nn.Module):
    """Maximum over positions; positions that tie share the gradient."""

    def forward(self, feature_map: Float[Tensor, "n f h w"]) -> Float[Tensor, "n f"]:
        """Pool each channel."""
        return feature_map.amax(dim=(2, 3))


class AverageMaxPool(nn.Module):
    """Mean plus maximum, as in the papers of the Proxy Anchor family."""

    def forward(self, feature_map: Float[Tensor, "n f h w"]) -> Float[Tensor, "n f"]:
        """Pool each channel."""
        return feature_map.mean(dim=(2, 3)) + feature_map.amax(dim=(2, 3))


class GeM(nn.Module):
    """Generalised mean with a learned power: p = 1 is the mean, p → ∞ the maximum.

        f = (mean over positions of max(x, eps)^p)^(1/p)

    Computed in float32 and relative to the largest activation of each channel, so that no power overflows or vanishes.

    Args:
        p: start of the power; learned, and never used below 1.

    Example:
        >>> GeM(p=1.0)(torch.tensor([[[[1.0, 3.0]]]])).item()
        2.0

    Reference:
        Radenović, Tolias, Chum: Fine-tuning CNN Image Retrieval with No Human Annotation (2018).
    """

    def __init__(self, p: float = 3.0):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(float(p)))

    def forward(self, feature_map: Float[Tensor, "n f h w"]) -> Float[Tensor, "n f"]:
        """Pool each channel."""
        x = feature_map.float().clamp(min=GEM_EPS)
        p = self.p.float().clamp(min=1.0)
        # Dividing by the largest value and multiplying it back changes neither value nor gradient.
        largest = x.detach().amax(dim=(2, 3), keepdim=True)
        mean = (x / largest).pow(p).mean(dim=(2, 3))
        return (mean.pow(1.0 / p) * largest[:, :, 0, 0]).to(feature_map.dtype)


POOLS: dict[str, Callable[[], nn.Module]] = {
    "avg": AveragePool,
    "max": MaxPool,
    "avg+max": AverageMaxPool,
    "gem": GeM,
}
"""Name → pooling module; `trunk` besides means the trunk's own pooling."""
