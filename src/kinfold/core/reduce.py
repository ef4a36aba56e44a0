"""Guarded reductions and norms: every clamp, mask and epsilon of the losses, once."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from kinfold.errors import ConfigError

TINY_NORM = 1e-12
"""A row whose largest entry is not above this counts as a zero vector."""


def at_least_float32(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return `x` in float32, or as it is where it is float32 or finer: exp(50 · 0.5) does not fit into float16."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def normalise(x: Float[Tensor, "*shape d"]) -> Float[Tensor, "*shape d"]:
    """Scale each row to length 1; a zero row stays zero and gets a zero gradient.

    The row is divided by its largest entry first, so that squares neither overflow nor vanish. The result does not depend on
    that entry, so it is a constant for the gradient.

    Example:
        >>> normalise(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    if x.numel() == 0:
        return x
    largest = x.detach().abs().amax(dim=-1, keepdim=True)
    is_zero = largest <= TINY_NORM
    scaled = (x / largest.masked_fill(is_zero, 1.0)).masked_fill(is_zero, 0.0)
    square = scaled.square().sum(dim=-1, keepdim=True)
    return scaled * square.masked_fill(is_zero, 1.0).rsqrt()


def masked_logsumexp(
    x: Float[Tensor, "n m"], keep: Bool[Tensor, "n m"], weight: Float[Tensor, "n m"] | None = None, *, dim: int
) -> Float[Tensor, " k"]:
    """Return log(sum of weight · exp(x) over the kept entries) along `dim`.

    An empty sum gives -inf with a zero gradient, so that `softplus` or `relu` of it is 0. Entries of weight 0 are masked before
    the logarithm is taken: they add nothing, also no NaN to the gradient.

    Args:
        x: exponents.
        keep: which entries belong to the sum.
        weight: coefficients of the exponentials, >= 0; `None` means ones.
        dim: the dimension that is summed away.

    Returns:
        One value per remaining row or column.

    Example:
        >>> masked_logsumexp(torch.zeros(2, 3), torch.tensor([[True, True, False], [False, False, False]]), dim=1)
        tensor([0.6931,   -inf])
    """
    if x.shape[dim] == 0:
        return x.sum(dim=dim) - torch.inf
    if weight is not None:
        keep = keep & (weight > 0)
        x = x + at_least_float32(weight).masked_fill(~keep, 1.0).log()
    peak = x.detach().masked_fill(~keep, -torch.inf).amax(dim=dim, keepdim=True)
    total = (x - peak).masked_fill(~keep, -torch.inf).exp().sum(dim=dim)
    is_empty = ~keep.any(dim=dim)
    return (total.masked_fill(is_empty, 1.0).log() + peak.squeeze(dim)).masked_fill(is_empty, -torch.inf)


def sum_over_pairs(
    term: Float[Tensor, "*shape"], keep: Bool[Tensor, "*shape"], weight: Float[Tensor, "*shape"] | None = None
) -> Float[Tensor, ""]:
    """Return the sum of weight · term over the kept entries; no entry gives 0 with a graph."""
    weighted = term if weight is None else term * weight
    return weighted.masked_fill(~keep, 0.0).sum()


def mean_over_pairs(
    term: Float[Tensor, "*shape"], keep: Bool[Tensor, "*shape"], weight: Float[Tensor, "*shape"] | None = None
) -> Float[Tensor, ""]:
    """Return the sum of weight · term over the kept entries, divided by their *number*; no entry gives 0 with a graph.

    Example:
        >>> term, keep = torch.tensor([2.0, 4.0, 9.0]), torch.tensor([True, True, False])
        >>> mean_over_pairs(term, keep, weight=torch.tensor([0.0, 1.0, 1.0]))
        tensor(2.)
    """
    return sum_over_pairs(term, keep, weight) / keep.sum().clamp(min=1)


def mean_over_active(
    term: Float[Tensor, "*shape"], keep: Bool[Tensor, "*shape"], weight: Float[Tensor, "*shape"] | None = None
) -> Float[Tensor, ""]:
    """As `mean_over_pairs`, divided by the number of kept entries whose term is above 0, whatever their weight.

    Example:
        >>> mean_over_active(torch.tensor([2.0, 0.0, 4.0]), torch.tensor([True, True, True]))
        tensor(3.)
    """
    return mean_over_pairs(term, keep & (term > 0), weight)


def mean_over_rows(term: Float[Tensor, " n"]) -> Float[Tensor, ""]:
    """Return the mean over all rows, those that add 0 included; no row gives 0 with a graph."""
    return term.sum() / max(len(term), 1)


def require_positive(**values: float) -> None:
    """Refuse hyperparameters that must be above 0: a negative slope would train the opposite.

    Raises:
        ConfigError: a value is not above 0.
    """
    for name, value in values.items():
        if not value > 0:
            raise ConfigError(f"`{name}` is {value}: it must be larger than 0")
