"""How well k-means clusters agree with the classes: NMI and AMI."""

import warnings

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.evaluation.typed import array_of, sklearn_function, tensor_of

RESTARTS = 3


def cluster_codes(embedding: Float[Tensor, "n d"], n_clusters: int, *, normalised: bool, seed: int = 0) -> Int[Tensor, " n"]:
    """Return the cluster of each row after k-means (the best of 3 seeded starts), on unit rows if `normalised`."""
    x = embedding.detach().to("cpu", torch.float64 if embedding.dtype == torch.float64 else torch.float32)
    if normalised:
        x = torch.nn.functional.normalize(x, dim=1)
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters is a result to be scored, not a mistake of the caller.
        warnings.simplefilter("ignore")
        found = sklearn_function("cluster", "KMeans")(n_clusters=n_clusters, n_init=RESTARTS, random_state=seed).fit_predict(
            array_of(x)
        )
    return tensor_of(found).long()


def nmi(label: Int[Tensor, " n"], cluster: Int[Tensor, " n"]) -> float:
    """Return the normalised mutual information: I(label; cluster) over the *arithmetic* mean of the two entropies.

    Some papers use the geometric mean, which is never smaller.

    Example:
        >>> nmi(torch.tensor([0, 0, 1, 1]), torch.tensor([1, 1, 0, 0]))
        1.0
    """
    return _agreement("normalized_mutual_info_score", label, cluster)


def ami(label: Int[Tensor, " n"], cluster: Int[Tensor, " n"]) -> float:
    """Return the mutual information adjusted for chance: 0 for random clusters on average, 1 for the classes themselves.

    Example:
        >>> ami(torch.tensor([0, 0, 1, 1]), torch.tensor([1, 1, 0, 0]))
        1.0
    """
    return _agreement("adjusted_mutual_info_score", label, cluster)


def _agreement(name: str, label: Int[Tensor, " n"], cluster: Int[Tensor, " n"]) -> float:
    return float(sklearn_function("metrics", name)(array_of(label), array_of(cluster), average_method="arithmetic"))
