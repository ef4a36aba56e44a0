"""Proxy-NCA and Proxy-NCA++: one keyword apart (Movshovitz-Attias et al. 2017; Teh et al. 2020)."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from kinfold.core.pairs import shifted
from kinfold.core.reduce import masked_logsumexp, mean_over_pairs, require_positive
from kinfold.records import Pairs


def proxy_nca(
    sim: Float[Tensor, "n m"],
    pairs: Pairs,
    *,
    scale: float = 24.0,
    positive_in_denominator: bool = True,
) -> Float[Tensor, ""]:
    """Ask that an embedding be more alike to its own proxy than to all others together.

        L = mean over P of w_ij ( -scale s_ij + log( [exp(scale s_ij)] + sum over N_i of w_ik exp(scale s_ik) ) )

    with s_ij = sim_ij - margin_ij and w_ij = weight_ij. The bracket is the positive in the denominator: the published loss leaves
    it out (and can be negative), all later uses put it in, and so does this default. The weight of a positive is the weight of
    its whole term. Several positives of a row give a term each, without one another in the denominator.

    Scale: the papers speak of squared distances of unit vectors, d² = 2 - 2 cos. A factor on d² is *half* the scale of a cosine:
    temperature 1/9 (Proxy-NCA++) is `scale=18`, factor 12 (Proxy Synthesis) is `scale=24`, factor 32 is `scale=64`. With
    `sim = negative_squared_euclidean` of unit vectors, the factor is the scale itself.

    Args:
        sim: similarity of row i (an embedding) to column j (a proxy); larger means more alike.
        pairs: which entries are positive or negative, their margins and weights.
        scale: factor on the similarity; > 0.
        positive_in_denominator: False gives the loss as published in 2017.

    Returns:
        The loss. A row without negatives adds 0.

    Raises:
        ShapeError: `sim` and `pairs` differ in size.
        ConfigError: `scale` is not above 0.

    Example:
        >>> pairs = Pairs(torch.tensor([[True, False, False]]), torch.tensor([[False, True, True]]))
        >>> proxy_nca(torch.zeros(1, 3), pairs), proxy_nca(torch.zeros(1, 3), pairs, positive_in_denominator=False)
        (tensor(1.0986), tensor(0.6931))

    Reference:
        Movshovitz-Attias et al., No Fuss Distance Metric Learning using Proxies, ICCV 2017.
        Teh et al., ProxyNCA++: Revisiting and Revitalizing Proxy Neighborhood Component Analysis, ECCV 2020.
    """
    require_positive(scale=scale)
    s = scale * shifted(sim, pairs)
    negatives = masked_logsumexp(s, pairs.negative, pairs.weight, dim=1)[:, None]
    if positive_in_denominator:
        return mean_over_pairs(softplus(negatives - s), pairs.positive, pairs.weight)
    term = torch.where(negatives > -torch.inf, negatives - s, 0.0)
    return mean_over_pairs(term, pairs.positive, pairs.weight)
