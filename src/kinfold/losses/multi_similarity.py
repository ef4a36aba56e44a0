"""Multi-similarity: soft maxima over each anchor's positives and negatives (Wang et al. 2019)."""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from kinfold.core.pairs import shifted
from kinfold.core.reduce import masked_logsumexp, mean_over_rows, require_positive
from kinfold.records import Pairs


def multi_similarity(
    sim: Float[Tensor, "n m"],
    pairs: Pairs,
    *,
    alpha: float = 2.0,
    beta: float = 50.0,
    threshold: float = 0.5,
) -> Float[Tensor, ""]:
    """Weigh each pair of an anchor by how hard it is among the anchor's others.

        L = 1/n sum over rows i of   1/alpha log(1 + sum over P_i of w_ij exp(-alpha (s_ij - lambda)))
                                   + 1/beta  log(1 + sum over N_i of w_ij exp( beta  (s_ij - lambda)))

    with s_ij = sim_ij - margin_ij and w_ij = weight_ij. The published method trains on the pairs that `multi_similarity_mining`
    keeps; a row that lost all pairs still counts in n.

    Paper → here: lambda → threshold (1 in the paper, 0.5 in the released code and here; the code's beta is 40).

    Args:
        sim: similarity of row i to column j; larger means more alike.
        pairs: which entries are positive or negative, their margins and weights.
        alpha: slope on positives; > 0.
        beta: slope on negatives; > 0.
        threshold: the similarity that parts positives from negatives.

    Returns:
        The loss. An empty side of a row adds 0.

    Raises:
        ShapeError: `sim` and `pairs` differ in size.
        ConfigError: a slope is not above 0.

    Example:
        >>> import torch
        >>> pairs = Pairs(positive=torch.tensor([[True, False]]), negative=torch.tensor([[False, True]]))
        >>> multi_similarity(torch.tensor([[0.5, 0.5]]), pairs)
        tensor(0.3604)

    Reference:
        Wang et al., Multi-Similarity Loss with General Pair Weighting, CVPR 2019.
    """
    require_positive(alpha=alpha, beta=beta)
    s = shifted(sim, pairs)
    pull = softplus(masked_logsumexp(-alpha * (s - threshold), pairs.positive, pairs.weight, dim=1)) / alpha
    push = softplus(masked_logsumexp(beta * (s - threshold), pairs.negative, pairs.weight, dim=1)) / beta
    return mean_over_rows(pull + push)
