"""Embeddings laid out on a plane, for the eye."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import ConfigError, DataError, MissingExtraError, ShapeError

Method = Literal["tsne", "pca"]
MAX_PLAIN = 10_000
"""Rows up to which scikit-learn's t-SNE is used: beyond them it takes many minutes."""


def project(
    embedding: ArrayLike, *, method: Method = "tsne", normalised: bool = True, perplexity: float = 30.0, seed: int = 0
) -> np.ndarray:
    """Lay embeddings out on a plane so that neighbours stay near each other.

    t-SNE starts from the principal components and compares unit rows by Euclidean distance, which orders pairs as cosine does:
    |a - b|² = 2 - 2 cos(a, b). Up to 10,000 rows it is scikit-learn's; above, openTSNE's (extra `tsne`), whose time grows with n.
    Distances between far groups, and the size of groups, mean nothing in it.

    Args:
        embedding: (n, d), at least 3 rows.
        method: `tsne`, or `pca`: the two directions of largest variance, whose distances do mean something.
        normalised: scale rows to length 1 first.
        perplexity: about how many neighbours a row keeps near, >= 1. With few rows it is lowered to (n - 1) / 3, as is usual.
        seed: of t-SNE; equal input and seed give an equal result on one machine.

    Returns:
        (n, 2) float64, centred at 0.

    Raises:
        ShapeError: not (n, d) with n >= 3.
        DataError: values that are not finite, or a zero row that cannot be normalised.
        ConfigError: an unknown method, or a perplexity below 1.
        MissingExtraError: more than 10,000 rows without the extra.

    Reference:
        van der Maaten and Hinton, Visualizing Data using t-SNE, JMLR 2008.

    Example:
        >>> project([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.1, 0.0]], method="pca").shape
        (3, 2)
    """
    x = _checked(embedding, normalised=normalised)
    if method not in ("tsne", "pca"):
        raise ConfigError(f"method = {method!r}: give `tsne` or `pca`.")
    if not perplexity >= 1:
        raise ConfigError(f"perplexity = {perplexity}: it is a number of neighbours, at least 1.")
    start = _principal(x)
    if method == "pca":
        return start
    settings: dict[str, Any] = {"perplexity": perplexity_for(len(x), perplexity), "random_state": seed}
    # Its scale must be small, or neighbours cannot pass each other; 1e-4 is what both packages use.
    begin = start / max(float(start[:, 0].std()), 1e-12) * 1e-4
    laid = _plain(x, begin, settings) if len(x) <= MAX_PLAIN else _large(x, begin, settings)
    return laid - laid.mean(axis=0)


def perplexity_for(n: int, perplexity: float) -> float:
    """Return the perplexity that `project` uses for n rows: the one wanted, or (n - 1) / 3 where that is less."""
    return min(perplexity, (n - 1) / 3)


def turned_to(position: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Turn, or mirror, one plane so that its rows lie as near as may be to those of another; no distance within it changes.

        minimise |position Q - reference|² over orthogonal Q (both centred)

    Which way round a t-SNE map lies is chance: two maps of the same rows are read more easily when they agree on it.

    Args:
        position: (n, 2).
        reference: (n, 2), the same rows.

    Returns:
        (n, 2), centred at 0.

    Raises:
        ShapeError: shapes that differ.

    Reference:
        Schönemann, A generalized solution of the orthogonal Procrustes problem, Psychometrika 1966.

    Example:
        >>> corner = np.array([[-1.0, -1.0], [2.0, -1.0], [-1.0, 2.0]])
        >>> bool(np.allclose(turned_to(corner[:, ::-1] * [-1, 1], corner), corner))
        True
    """
    if position.shape != reference.shape:
        raise ShapeError(f"maps of shape {position.shape} and {reference.shape}: they must show the same rows.")
    position = position - position.mean(axis=0)
    left, _, right = np.linalg.svd(position.T @ (reference - reference.mean(axis=0)))
    return position @ (left @ right)


def _plain(x: np.ndarray, begin: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    from sklearn.manifold import TSNE

    how: dict[str, Any] = {"init": begin, "learning_rate": "auto", **settings}
    return TSNE(**how).fit_transform(x).astype(np.float64)


def _large(x: np.ndarray, begin: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    try:
        from openTSNE import TSNE  # pyright: ignore[reportMissingImports]
    except ImportError:
        purpose = f"t-SNE of {len(x):,} rows (more than {MAX_PLAIN:,}; or draw fewer, such as --max-images {MAX_PLAIN})"
        raise MissingExtraError("openTSNE", "tsne", purpose) from None
    how: dict[str, Any] = {"initialization": begin, "n_jobs": 1, **settings}
    return np.asarray(TSNE(**how).fit(x), dtype=np.float64)


def _principal(x: np.ndarray) -> np.ndarray:
    """Return the first two principal components, with signs that do not depend on the solver."""
    centred = x - x.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    directions = directions[:, :-3:-1]  # the largest come last
    if directions.shape[1] < 2:
        directions = np.concatenate([directions, np.zeros_like(directions)], axis=1)
    strongest = np.abs(directions).argmax(axis=0)
    signs = np.where(directions[strongest, [0, 1]] < 0, -1.0, 1.0)
    return centred @ (directions * signs)


def _checked(embedding: ArrayLike, *, normalised: bool) -> np.ndarray:
    x = np.asarray(embedding, dtype=np.float64)
    if x.ndim != 2 or len(x) < 3 or x.shape[1] < 1:
        raise ShapeError(f"embeddings have shape {x.shape}: a map needs (n, d) with at least 3 rows.")
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if len(bad):
        raise DataError(f"{len(bad)} of {len(x)} embeddings are not finite, the first in row {bad[0]}.")
    if not normalised:
        return x
    length = np.linalg.norm(x, axis=1, keepdims=True)
    if not length.all():
        row = int(np.flatnonzero(length == 0)[0])
        raise DataError(f"the embedding in row {row} is zero and has no direction: leave it out, or give normalised=False.")
    return x / length
