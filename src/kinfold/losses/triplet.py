"""Triplet loss: hinge or soft, with a pick function from mining (Schroff et al. 2015; Hermans et al. 2017)."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import relu, softplus

from kinfold.core.mining import Pick, all_triplets
from kinfold.core.pairs import shifted
from kinfold.core.reduce import mean_over_active, mean_over_pairs
from kinfold.records import Pairs


def triplet(
    sim: Float[Tensor, "n m"],
    pairs: Pairs,
    *,
    margin: float = 0.1,
    pick: Pick = all_triplets,
    form: Literal["hinge", "soft"] = "hinge",
    average: Literal["triplets", "active"] = "triplets",
) -> Float[Tensor, ""]:
    """Ask that a positive be more alike to the anchor than a negative, by a margin.

        L = average over triplets (a, p, n) of w_ap w_an [s_an - s_ap + m]_+             (hinge)
                                            or w_ap w_an log(1 + exp(s_an - s_ap + m))   (soft)

    with s_ij = sim_ij - margin_ij and w_ij = weight_ij. With distances this is [D_ap - D_an + m]_+ for `negative_euclidean`, and
    FaceNet's [D_ap² - D_an² + m]_+ for `negative_squared_euclidean`. The choice of triplets carries no gradient.

    Args:
        sim: similarity of row i to column j; larger means more alike.
        pairs: which entries are positive or negative, their margins and weights.
        margin: m, in units of similarity.
        pick: which triplets, from `kinfold.core.mining`; it sees the similarities after their margins. The window of
            `semi_hard` is bound by `functools.partial(semi_hard, margin=…)`.
        form: `soft` never stops pulling; it is meant for `margin=0` with `batch_hard`.
        average: over all picked triplets, or over those whose term is above 0 (the habit of libraries).

    Returns:
        The loss; 0 where no triplet was picked.

    Raises:
        ShapeError: `sim` and `pairs` differ in size.

    Example:
        >>> pairs = Pairs(torch.tensor([[True, False, False]]), torch.tensor([[False, True, True]]))
        >>> triplet(torch.tensor([[0.5, 0.75, 0.0]]), pairs, margin=0.25)
        tensor(0.2500)

    Reference:
        Schroff et al., FaceNet, CVPR 2015.
        Hermans et al., In Defense of the Triplet Loss for Person Re-Identification, 2017.
    """
    s = shifted(sim, pairs)
    picked = pick(s.detach(), pairs)
    violation = s[picked.anchor, picked.negative] - s[picked.anchor, picked.positive] + margin
    term = softplus(violation) if form == "soft" else relu(violation)
    mean = mean_over_active if average == "active" else mean_over_pairs
    return mean(term, torch.ones_like(term, dtype=torch.bool), picked.weight)
