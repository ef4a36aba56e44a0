"""The table of metrics: public names → functions."""

from collections.abc import Callable

from torch import Tensor

from kinfold.evaluation.cluster_metrics import ami, nmi
from kinfold.evaluation.rank_record import Ranks
from kinfold.evaluation.ranking_metrics import (
    average_precision,
    map_at_r,
    ndcg,
    precision_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
)

AT_K: dict[str, Callable[[Ranks, int], Tensor]] = {"recall_at_k": recall_at_k, "precision_at_k": precision_at_k}
OVERALL: dict[str, Callable[[Ranks], Tensor]] = {
    "r_precision": r_precision,
    "map_at_r": map_at_r,
    "map": average_precision,
    "mrr": reciprocal_rank,
    "ndcg": ndcg,
}
CLUSTERING: dict[str, Callable[[Tensor, Tensor], float]] = {"nmi": nmi, "ami": ami}
METRICS = {**AT_K, **OVERALL, **CLUSTERING}
