"""Ways of cutting vectors into so many clusters: the table of names, and anything with `fit` and `predict`."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from kinfold.core.clustering import centres_of, kmeans
from kinfold.errors import ConfigError, did_you_mean

Clustering = Callable[..., Tensor]
"""(x (n, d), n_clusters, *, seed) → the cluster of each row, (n,), numbered from 0."""


def by_kmeans(x: Tensor, n_clusters: int, *, seed: int) -> Tensor:
    """Cluster by k-means, on the device of `x`; see `kinfold.core.clustering.kmeans`."""
    return kmeans(x, n_clusters, generator=torch.Generator().manual_seed(seed))


def by_gaussian_mixture(x: Tensor, n_clusters: int, *, seed: int) -> Tensor:
    """Cluster by a mixture of Gaussians with diagonal covariances (scikit-learn); each row goes to its likeliest component."""
    from sklearn.mixture import GaussianMixture

    return _fitted(GaussianMixture(n_clusters, covariance_type="diag", random_state=seed), x)


def by_agglomeration(x: Tensor, n_clusters: int, *, seed: int) -> Tensor:
    """Cluster by merging the two clusters whose union is tightest (Ward), until so many are left (scikit-learn)."""
    from sklearn.cluster import AgglomerativeClustering

    del seed  # nothing is drawn
    return _fitted(AgglomerativeClustering(n_clusters), x)


CLUSTERINGS: dict[str, Clustering] = {
    "kmeans": by_kmeans,
    "gmm": by_gaussian_mixture,
    "agglomerative": by_agglomeration,
}


def clustering_of(value: Any) -> Clustering:
    """Return a clustering by its name, an estimator's, or a function as it is.

    Args:
        value: a name of `CLUSTERINGS`; an estimator in the manner of scikit-learn, with `fit_predict`, or `fit` and `predict`, and a
            parameter `n_clusters` or `n_components`, copied for each use; or a function `(x, n_clusters, *, seed) -> codes`.

    Raises:
        ConfigError: it is none of these.

    Example:
        >>> from sklearn.cluster import BisectingKMeans
        >>> clustering_of(BisectingKMeans())(torch.tensor([[0.0], [0.1], [9.0]]), 2, seed=0).unique().tolist()
        [0, 1]
    """
    if isinstance(value, str):
        if value not in CLUSTERINGS:
            raise ConfigError(f"clustering {value!r} is not known: {did_you_mean(value, CLUSTERINGS)}")
        return CLUSTERINGS[value]
    if hasattr(value, "get_params") and hasattr(value, "fit"):
        return lambda x, n_clusters, *, seed: _fitted(_sized(value, n_clusters, seed), x)
    if callable(value):
        return cast(Clustering, value)
    raise ConfigError(
        f"clustering is a {type(value).__name__}: give one of {', '.join(CLUSTERINGS)}, an estimator with `fit` and `predict`, or a "
        "function (x, n_clusters, *, seed) -> codes."
    )


def clusters_of_clusters(x: Tensor, sizes: Sequence[int], clustering: Any, *, unit: bool, seed: int) -> list[Tensor]:
    """Cluster rows, then the centres of these clusters, and so on.

    Args:
        x: (n, d), of length 1 if `unit`.
        sizes: number of clusters of each level, the finest first.
        clustering: see `clustering_of`; `kmeans` becomes spherical if `unit`.
        unit: centres are brought to length 1.
        seed: of every level's clustering.

    Returns:
        For each level the cluster of each thing below it: rows, clusters of rows, …

    Raises:
        ConfigError: the clustering does not give one cluster for each row.

    Example:
        >>> x = torch.tensor([[0.0], [0.1], [4.0], [4.1], [90.0]])
        >>> fine, coarse = clusters_of_clusters(x, (3, 2), "kmeans", unit=False, seed=0)
        >>> len(fine), len(coarse), bool(fine[0] == fine[1]), bool(coarse[fine[0]] == coarse[fine[2]])
        (5, 3, True, True)
    """
    find, found = clustering_of(clustering), list[Tensor]()
    for size in sizes:
        if clustering == "kmeans":
            code = kmeans(x, size, generator=torch.Generator().manual_seed(seed), unit=unit)
        else:
            code = checked_codes(find(x, size, seed=seed), len(x), size).to(x.device)
        found.append(code)
        x = centres_of(x, code, size, unit=unit)
    return found


def checked_codes(code: Any, n_rows: int, n_clusters: int) -> Tensor:
    """Return what a clustering gave as codes.

    Raises:
        ConfigError: not one whole number from 0 to `n_clusters` − 1 for each row.
    """
    found = torch.as_tensor(code)
    if (
        found.shape != (n_rows,)
        or found.is_floating_point()
        or (n_rows and not 0 <= int(found.min()) <= int(found.max()) < n_clusters)
    ):
        span = f"{found.min()} to {found.max()}" if found.numel() else "nothing"
        raise ConfigError(
            f"the clustering gave {tuple(found.shape)} of {found.dtype}, {span}: it must give one cluster from 0 to {n_clusters - 1} for "
            f"each of {n_rows} rows."
        )
    return found.long()


def _sized(estimator: Any, n_clusters: int, seed: int) -> Any:
    from sklearn.base import clone

    own: Any = clone(estimator)
    known = own.get_params()
    sizes = [name for name in ("n_clusters", "n_components") if name in known]
    if not sizes:
        raise ConfigError(
            f"{type(estimator).__name__} has no parameter `n_clusters` or `n_components`: it cannot be given a size."
        )
    chosen = {sizes[0]: n_clusters}
    if known.get("random_state", seed) is None:
        chosen["random_state"] = seed
    return own.set_params(**chosen)


def _fitted(estimator: Any, x: Tensor) -> Tensor:
    rows = x.detach().cpu().double().numpy()
    code = estimator.fit_predict(rows) if hasattr(estimator, "fit_predict") else estimator.fit(rows).predict(rows)
    return torch.as_tensor(code).long().to(x.device)
