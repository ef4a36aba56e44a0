"""Similarities of every row to every column: (n, d), (m, d) → (n, m), larger means more alike."""

from contextlib import AbstractContextManager, nullcontext

import torch
from jaxtyping import Float
from torch import Tensor

from kinfold.core.reduce import at_least_float32, normalise
from kinfold.records import Similarity


def cosine(x: Float[Tensor, "n d"], y: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Return the cosine of the angle between each row of `x` and each row of `y`, in [-1, 1] up to rounding.

    A zero row has similarity 0 to everything, and a zero gradient.

    Example:
        >>> cosine(torch.tensor([[1.0, 0.0]]), torch.tensor([[5.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]))
        tensor([[ 1.,  0., -1.]])
    """
    x, y = _same_precision(x, y)
    with _without_autocast(x):
        return normalise(x) @ normalise(y).T


def dot(x: Float[Tensor, "n d"], y: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Return the inner product of each row of `x` with each row of `y`.

    Example:
        >>> dot(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([[11.]])
    """
    x, y = _same_precision(x, y)
    with _without_autocast(x):
        return x @ y.T


def negative_euclidean(x: Float[Tensor, "n d"], y: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Return minus the Euclidean distance of each row of `x` to each row of `y`; nothing is normalised.

    Differences are squared directly, not expanded into products: equal rows are exactly 0 apart (with a zero gradient), and a
    value does not depend on the size of the matrix around it. It costs about 20 times a product for large matrices.

    Example:
        >>> negative_euclidean(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor([[-5., -0.]])
    """
    x, y = _same_precision(x, y)
    with _without_autocast(x):
        return -torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def negative_squared_euclidean(x: Float[Tensor, "n d"], y: Float[Tensor, "m d"]) -> Float[Tensor, "n m"]:
    """Return minus the squared Euclidean distance; on unit rows this is 2 · cosine - 2.

    Example:
        >>> negative_squared_euclidean(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([[-25.]])
    """
    return -negative_euclidean(x, y).square()


def _same_precision(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    dtype = torch.promote_types(x.dtype, y.dtype)
    return at_least_float32(x.to(dtype)), at_least_float32(y.to(dtype))


def _without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """Keep autocast from rounding the products to 8 or 11 bits."""
    device = x.device.type
    return torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext()


SIMILARITIES: dict[str, Similarity] = {
    "cosine": cosine,
    "dot": dot,
    "negative_euclidean": negative_euclidean,
    "negative_squared_euclidean": negative_squared_euclidean,
}
