"""Lifted structure: all negatives of an anchor, or of a pair, at once (Song et al. 2016; Hermans et al. 2017)."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import relu

from kinfold.core.pairs import shifted
from kinfold.core.reduce import masked_logsumexp, mean_over_pairs, mean_over_rows
from kinfold.records import Pairs


def lifted_structure(
    sim: Float[Tensor, "n m"],
    pairs: Pairs,
    *,
    margin: float = 1.0,
    per: Literal["anchor", "pair"] = "anchor",
) -> Float[Tensor, ""]:
    """Set each anchor's positives, or each positive pair, against all of its negatives at once.

        anchor  L = 1/n sum over rows i of [ log sum over P_i of w_ij exp(m - s_ij) + log sum over N_i of w_ij exp(s_ij) ]_+
        pair    L = mean over P of w_ij/2 [ m - s_ij + log( sum over N_i of w_ik exp(s_ik) + sum over N^j of w_kj exp(s_kj) ) ]_+^2

    with s_ij = sim_ij - margin_ij, w_ij = weight_ij, N_i the negatives in row i and N^j those in column j (for a batch against
    itself: the negatives of item j).

    `anchor` is the generalised form. As written it is the similarity form on cosines (m = gamma). With distances D and
    `sim = negative_euclidean`, D = -s, it reads [ log sum exp(D_ap) + log sum exp(m - D_an) ]_+: the same function.
    `pair` is the form of 2016, with D = -s: [ log( sum exp(m - D_ik) + sum exp(m - D_jk) ) + D_ij ]_+^2 over unordered pairs;
    each is met twice in a square matrix, hence the half.

    Args:
        sim: similarity of row i to column j; larger means more alike.
        pairs: which entries are positive or negative, their margins and weights.
        margin: m, in units of similarity.
        per: what a term belongs to.

    Returns:
        The loss. A row or pair without a positive or without a negative adds 0 and counts in the average.

    Raises:
        ShapeError: `sim` and `pairs` differ in size.

    Example:
        >>> pairs = Pairs(positive=torch.tensor([[True, False]]), negative=torch.tensor([[False, True]]))
        >>> lifted_structure(torch.tensor([[0.75, 0.5]]), pairs)
        tensor(0.7500)

    Reference:
        Song et al., Deep Metric Learning via Lifted Structured Feature Embedding, CVPR 2016 (`pair`).
        Hermans et al., In Defense of the Triplet Loss for Person Re-Identification, 2017 (`anchor`).
    """
    s = shifted(sim, pairs)
    row = masked_logsumexp(s, pairs.negative, pairs.weight, dim=1)
    if per == "anchor":
        return mean_over_rows(relu(masked_logsumexp(margin - s, pairs.positive, pairs.weight, dim=1) + row))
    row, column = row[:, None], masked_logsumexp(s, pairs.negative, pairs.weight, dim=0)[None, :]
    is_alone = torch.maximum(row, column) == -torch.inf
    lift = torch.logaddexp(torch.where(is_alone, 0.0, row), column)
    term = torch.where(is_alone, 0.0, relu(lift + margin - s).square() / 2)
    return mean_over_pairs(term, pairs.positive, pairs.weight)
