"""Normalised softmax: classification by cosine, with a scale (Wang et al. 2017; Zhai and Wu 2019)."""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from kinfold.core.pairs import shifted
from kinfold.core.reduce import masked_logsumexp, mean_over_pairs, require_positive
from kinfold.records import Pairs


def normalized_softmax(
    sim: Float[Tensor, "n m"],
    pairs: Pairs,
    *,
    scale: float = 20.0,
) -> Float[Tensor, ""]:
    """Classify by cosine: cross-entropy over the columns, as wide as `scale` makes it.

        L = mean over P of -w_ij log( exp(scale s_ij) / ( exp(scale s_ij) + sum over N_i of w_ik exp(scale s_ik) ) )

    with s_ij = sim_ij - margin_ij and w_ij = weight_ij. The weight of a positive is the weight of its whole term. Several positives
    of a row give a term each, without one another in the denominator.

    Paper → here: temperature sigma → scale = 1 / sigma.

    Args:
        sim: similarity of row i (an embedding) to column j (a class); larger means more alike.
        pairs: which entries are positive or negative, their margins and weights.
        scale: factor on the similarity; > 0. Published: 20 (temperature 0.05), 23 in the lane of Proxy Synthesis.

    Returns:
        The loss. A row without negatives adds 0.

    Raises:
        ShapeError: `sim` and `pairs` differ in size.
        ConfigError: `scale` is not above 0.

    Example:
        >>> import torch
        >>> pairs = Pairs(torch.tensor([[True, False, False]]), torch.tensor([[False, True, True]]))
        >>> normalized_softmax(torch.zeros(1, 3), pairs)
        tensor(1.0986)

    Reference:
        Wang et al., NormFace, ACM MM 2017.
        Zhai and Wu, Classification is a Strong Baseline for Deep Metric Learning, BMVC 2019.
    """
    require_positive(scale=scale)
    s = scale * shifted(sim, pairs)
    negatives = masked_logsumexp(s, pairs.negative, pairs.weight, dim=1)
    return mean_over_pairs(softplus(negatives[:, None] - s), pairs.positive, pairs.weight)
