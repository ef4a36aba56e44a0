"""Binomial deviance: the loss that BIER boosts (Yi et al. 2014; Opitz et al. 2018)."""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from kinfold.core.pairs import shifted
from kinfold.core.reduce import mean_over_pairs, require_positive
from kinfold.records import Pairs


def binomial_deviance(
    sim: Float[Tensor, "n m"],
    pairs: Pairs,
    *,
    alpha: float = 2.0,
    threshold: float = 0.5,
    cost: float = 25.0,
) -> Float[Tensor, ""]:
    """Pull positive pairs above a similarity threshold and push negative pairs below it, smoothly.

        L = mean over P of w_ij log(1 + exp(-beta_1     (s_ij - beta_2)))
          + mean over N of w_ij log(1 + exp( beta_1 C_0 (s_ij - beta_2)))

    with s_ij = sim_ij - margin_ij and w_ij = weight_ij; the means divide by the number of pairs.

    Paper → here: beta_1 → alpha, beta_2 → threshold, C_0 → cost.

    Args:
        sim: similarity of row i to column j; larger means more alike.
        pairs: which entries are positive or negative, their margins and weights.
        alpha: slope, per unit of similarity; > 0.
        threshold: the similarity that parts positives from negatives.
        cost: how much steeper negatives are than positives; > 0.

    Returns:
        The loss. An empty side (no positives, or no negatives) adds 0.

    Raises:
        ShapeError: `sim` and `pairs` differ in size.
        ConfigError: a slope is not above 0.

    Example:
        >>> import torch
        >>> sim = torch.tensor([[0.9, 0.1]])
        >>> pairs = Pairs(positive=torch.tensor([[True, False]]), negative=torch.tensor([[False, True]]))
        >>> binomial_deviance(sim, pairs)
        tensor(0.3711)

    Reference:
        Yi et al., Deep Metric Learning for Practical Person Re-Identification, 2014.
        Opitz et al., Deep Metric Learning with BIER, TPAMI 2018.
    """
    require_positive(alpha=alpha, cost=cost)
    s = shifted(sim, pairs)
    pull = softplus(-alpha * (s - threshold))
    push = softplus(alpha * cost * (s - threshold))
    return mean_over_pairs(pull, pairs.positive, pairs.weight) + mean_over_pairs(push, pairs.negative, pairs.weight)
