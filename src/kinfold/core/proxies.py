"""Proxies: one learned vector per class, and how they start."""

import torch
from jaxtyping import Float
from torch import Tensor


def initial_proxies(n_classes: int, dim: int, *, generator: torch.Generator | None = None) -> Float[Tensor, "c d"]:
    """Draw proxies as Proxy Anchor does: normal, standard deviation sqrt(2 / n_classes).

    Cosine ignores their length, but not so the optimiser: a short proxy turns further in a step of the same size. Published
    learning rates mean this start (Kaiming normal, `fan_out`, on a (classes, dim) tensor).

    Args:
        n_classes: number of proxies, >= 1.
        dim: size of the embedding.
        generator: source of the draw, on the CPU; `None` uses torch's own.

    Returns:
        The proxies, float32, on the CPU.

    Example:
        >>> initial_proxies(200, 64, generator=torch.Generator().manual_seed(0)).shape
        torch.Size([200, 64])

    Reference:
        Kim et al., Proxy Anchor Loss for Deep Metric Learning, CVPR 2020 (released code).
    """
    return torch.randn(n_classes, dim, generator=generator) * (2.0 / n_classes) ** 0.5
