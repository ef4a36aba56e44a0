"""Points between vectors, on the sphere: mixed and scaled back to length."""

from jaxtyping import Float
from torch import Tensor

from kinfold.core.reduce import normalise


def interpolate(x: Float[Tensor, "n d"], y: Float[Tensor, "n d"], share: Float[Tensor, "n 1"] | float) -> Float[Tensor, "n d"]:
    """Return a point between each row of `x` and the same row of `y`: their directions mixed, their lengths averaged.

        z = (λ |x| + (1 − λ) |y|) · normalise(λ x/|x| + (1 − λ) y/|y|)

    For unit rows that is the mixture, scaled back to length 1, of Proxy Synthesis and Embedding Expansion; other rows keep lengths
    that a similarity other than the cosine can use.

    Args:
        x: vectors.
        y: vectors.
        share: λ, in [0, 1].

    Returns:
        The points; zero where the mixture is (opposite rows and λ = 1/2), with a zero gradient there.

    Example:
        >>> import torch
        >>> interpolate(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 3.0]]), 0.5)
        tensor([[1.4142, 1.4142]])
    """
    length = share * _length(x) + (1 - share) * _length(y)
    return length * normalise(share * normalise(x) + (1 - share) * normalise(y))


def _length(x: Float[Tensor, "n d"]) -> Float[Tensor, "n 1"]:
    return (x * normalise(x)).sum(dim=1, keepdim=True)  # its gradient at 0 is 0, not NaN
