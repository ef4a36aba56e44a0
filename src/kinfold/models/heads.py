"""Heads: from the pooled feature of a trunk to the embedding."""

from jaxtyping import Float
from torch import Tensor, nn


class LinearHead(nn.Module):
    """One linear layer, with Kaiming-normal weights by its outputs and zero bias.

    Args:
        n_features: size of the pooled feature.
        dim: size of the embedding.
        bias: whether the layer adds a bias.
        layer_norm: whether each feature row is normalised first (without learned scale and shift).

    Example:
        >>> import torch
        >>> LinearHead(512, 128)(torch.zeros(2, 512)).shape
        torch.Size([2, 128])

    Reference:
        Kim, Kim, Cho, Kwak: Proxy Anchor Loss for Deep Metric Learning (2020).
    """

    def __init__(self, n_features: int, dim: int, *, bias: bool = True, layer_norm: bool = False):
        super().__init__()
        self.norm = nn.LayerNorm(n_features, elementwise_affine=False) if layer_norm else nn.Identity()
        self.linear = nn.Linear(n_features, dim, bias=bias)
        nn.init.kaiming_normal_(self.linear.weight, mode="fan_out")
        if bias:
            nn.init.zeros_(self.linear.bias)

    def forward(self, feature: Float[Tensor, "n f"]) -> Float[Tensor, "n d"]:
        """Map features to embeddings (not normalised)."""
        return self.linear(self.norm(feature))
