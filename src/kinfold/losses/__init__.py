"""Losses: one file, one pure function (sim, pairs, *, …) → scalar; `LOSSES` is the table of names."""

from collections.abc import Callable

from torch import Tensor

from kinfold.losses.binomial_deviance import binomial_deviance
from kinfold.losses.contrastive import contrastive
from kinfold.losses.lifted_structure import lifted_structure
from kinfold.losses.multi_similarity import multi_similarity
from kinfold.losses.normalized_softmax import normalized_softmax
from kinfold.losses.proxy_anchor import proxy_anchor
from kinfold.losses.proxy_nca import proxy_nca
from kinfold.losses.triplet import triplet

LOSSES: dict[str, Callable[..., Tensor]] = {
    "binomial_deviance": binomial_deviance,
    "contrastive": contrastive,
    "lifted_structure": lifted_structure,
    "multi_similarity": multi_similarity,
    "normalized_softmax": normalized_softmax,
    "proxy_anchor": proxy_anchor,
    "proxy_nca": proxy_nca,
    "triplet": triplet,
}
