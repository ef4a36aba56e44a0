"""Contrastive loss: a threshold per side (Hadsell et al. 2006)."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import relu

from kinfold.core.pairs import shifted
from kinfold.core.reduce import mean_over_active, mean_over_pairs, sum_over_pairs
from kinfold.records import Pairs


def contrastive(
    sim: Float[Tensor, "n m"],
    pairs: Pairs,
    *,
    positive_threshold: float = 1.0,
    negative_threshold: float = 0.5,
    form: Literal["hinge", "squared", "jump"] = "hinge",
    average: Literal["pairs", "active", "anchors"] = "pairs",
) -> Float[Tensor, ""]:
    """Pull positive pairs up to one threshold and push negative pairs below another.

        L = average over P of w_ij pull_ij + average over N of w_ij push_ij

        hinge    pull = [t_p - s_ij]_+      push = [s_ij - t_n]_+
        squared  pull = [t_p - s_ij]_+^2    push = [s_ij - t_n]_+^2
        jump     pull = [t_p - s_ij]_+      push = s_ij where s_ij > t_n, else 0

    with s_ij = sim_ij - margin_ij and w_ij = weight_ij. With distances D and `sim = negative_euclidean`, the thresholds change
    sign: [D - m_p]_+ and [m_n - D]_+ are t_p = -m_p and t_n = -m_n; Hadsell's loss is t_p = 0, t_n = -1, `squared`.

    Paper → here: m_p → positive_threshold, m_n → negative_threshold, with the sign above.

    Args:
        sim: similarity of row i to column j; larger means more alike.
        pairs: which entries are positive or negative, their margins and weights.
        positive_threshold: t_p; positives at least this alike are done. 1 with cosine: never done.
        negative_threshold: t_n; negatives at most this alike are done.
        form: `jump` with `average="anchors"` is the pair loss of XBM: constant gradient above the threshold.
        average: each side's sum is divided by its number of `pairs`, its number of `active` pairs (term above 0; the habit of
            libraries), or the number of rows (`anchors`).

    Returns:
        The loss. An empty side adds 0.

    Raises:
        ShapeError: `sim` and `pairs` differ in size.

    Example:
        >>> pairs = Pairs(positive=torch.tensor([[True, False]]), negative=torch.tensor([[False, True]]))
        >>> contrastive(torch.tensor([[0.75, 0.625]]), pairs)
        tensor(0.3750)

    Reference:
        Hadsell et al., Dimensionality Reduction by Learning an Invariant Mapping, CVPR 2006.
        Wang et al., Cross-Batch Memory for Embedding Learning, CVPR 2020 (`jump`).
    """
    s = shifted(sim, pairs)
    pull = relu(positive_threshold - s)
    push = relu(s - negative_threshold) if form != "jump" else torch.where(s > negative_threshold, s, 0.0)
    if form == "squared":
        pull, push = pull.square(), push.square()
    if average == "anchors":
        both = sum_over_pairs(pull, pairs.positive, pairs.weight) + sum_over_pairs(push, pairs.negative, pairs.weight)
        return both / max(len(sim), 1)
    mean = mean_over_active if average == "active" else mean_over_pairs
    return mean(pull, pairs.positive, pairs.weight) + mean(push, pairs.negative, pairs.weight)
