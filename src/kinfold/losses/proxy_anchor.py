"""Proxy Anchor: each proxy is an anchor, the batch its positives and negatives (Kim et al. 2020)."""

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from kinfold.core.pairs import shifted
from kinfold.core.reduce import masked_logsumexp, mean_over_rows, require_positive
from kinfold.records import Pairs


def proxy_anchor(
    sim: Float[Tensor, "n m"],
    pairs: Pairs,
    *,
    scale: float = 32.0,
    margin: float = 0.1,
    n_proxies: int | None = None,
) -> Float[Tensor, ""]:
    """Let each column, a proxy, pull its positives and push its negatives, the hardest most.

        L = 1/|P+| sum over P+ of log(1 + sum over X_p+ of w_ip exp(-alpha (s_ip - delta)))
          + 1/|P|  sum over P  of log(1 + sum over X_p- of w_ip exp( alpha (s_ip + delta)))

    with s_ip = sim_ip - margin_ip and w_ip = weight_ip. P are all columns, P+ those with at least one positive row.

    Paper → here: alpha → scale, delta → margin.

    Args:
        sim: similarity of row i (an embedding) to column p (a proxy); larger means more alike.
        pairs: which entries are positive or negative, their margins and weights.
        scale: slope, per unit of similarity; > 0.
        margin: distance of both thresholds from 0, in units of similarity.
        n_proxies: what the second part is divided by; `None`: |P|, all columns. Generated classes add columns: with their number
            tripled, each proxy is pushed a third as hard, unless this stays at the number of real classes.

    Returns:
        The loss. A column without positives adds 0 to the first part, and is not counted there.

    Raises:
        ShapeError: `sim` and `pairs` differ in size.
        ConfigError: `scale` is not above 0.

    Example:
        >>> import torch
        >>> pairs = Pairs(positive=torch.tensor([[True, False]]), negative=torch.tensor([[False, True]]))
        >>> proxy_anchor(torch.tensor([[0.125, -0.125]]), pairs, scale=8.0, margin=0.125)
        tensor(1.0397)

    Reference:
        Kim et al., Proxy Anchor Loss for Deep Metric Learning, CVPR 2020.
    """
    require_positive(scale=scale)
    s = shifted(sim, pairs)
    pull = softplus(masked_logsumexp(-scale * (s - margin), pairs.positive, pairs.weight, dim=0))
    push = softplus(masked_logsumexp(scale * (s + margin), pairs.negative, pairs.weight, dim=0))
    n_with_positive = pairs.positive.any(dim=0).sum().clamp(min=1)
    if n_proxies is None:
        return pull.sum() / n_with_positive + mean_over_rows(push)
    require_positive(n_proxies=float(n_proxies))
    return pull.sum() / n_with_positive + push.sum() / n_proxies
