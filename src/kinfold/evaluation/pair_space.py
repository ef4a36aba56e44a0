"""Similarities as values that one threshold can stand on: the same for every pair, ties without rounding noise."""

from dataclasses import replace

import torch
from torch import Tensor

from kinfold.core.similarity import cosine, dot
from kinfold.evaluation.spaces import Space, plain_space, space_of
from kinfold.records import Similarity

# Powers of two above the rounding of a cosine: up to 7 and 80 machine epsilons were seen in 8 to 4,096 dimensions.
COSINE_STEP = {torch.float32: 2.0**-19, torch.float64: 2.0**-44}


def pair_space(function: Similarity, x: Tensor) -> tuple[Space, float | None]:
    """Return the values of a similarity, and the step that they are rounded to (`None`: they are as computed).

    Ranks may drop whatever is the same for all candidates of a query, and do for Euclidean distances; a threshold is held against the
    pairs of all queries, so here every similarity keeps its own value. Cosines are rounded to multiples of 2^-19 (float64: 2^-44): copies
    of a row at different lengths then have cosine 1, not 1 give or take a few machine epsilons, and tie.
    """
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    if function is cosine:
        step = COSINE_STEP[wide]
        return replace(space_of(cosine, x, x), sim=_rounded_product(step)), step
    if function is dot:
        return space_of(dot, x, x), None
    return plain_space(function, wide), None


def _rounded_product(step: float) -> Similarity:
    return lambda x, y: (x @ y.T).div_(step).round_().mul_(step).clamp_(-1, 1)
