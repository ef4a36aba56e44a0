"""A hierarchy from embeddings: class means clustered into groups, and groups of groups."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from kinfold.clusterings import CLUSTERINGS, clusters_of_clusters
from kinfold.core.clustering import centres_of, in_space
from kinfold.core.hierarchy import Hierarchy, Name
from kinfold.core.numbered_groups import hierarchy_from_codes
from kinfold.errors import ConfigError, DataError, ShapeError, did_you_mean
from kinfold.evaluation.labels import codes_of

SPACES = ("unit", "raw")


def fit_hierarchy(
    embedding: Tensor | np.ndarray,
    label: Sequence[Name],
    sizes: Sequence[int],
    *,
    method: str = "kmeans",
    space: Literal["unit", "raw"] = "unit",
    seed: int = 0,
) -> Hierarchy:
    """Group classes by how alike their embeddings are.

        m_c = mean of the class's embeddings;   level 1: clusters of the m_c;   level l + 1: clusters of level l's centres

    A centre is the mean of the means, or centres, below it. Levels and groups are named as by `hierarchy_from_codes`.

    Args:
        embedding: (n, d), a row for each image.
        label: class of each row.
        sizes: number of groups of each level, the finest first, falling, from 2 to the number of classes.
        method: a name of `CLUSTERINGS`: `kmeans`, `gmm` or `agglomerative`.
        space: `unit` brings rows, means and centres to length 1, which is what cosine sees (k-means is then spherical); `raw` takes
            them as they are.
        seed: of the clustering.

    Raises:
        ShapeError: labels of another number than rows.
        DataError: a value is not finite.
        ConfigError: sizes that do not fall or do not fit the number of classes, or an unknown method or space.

    Example:
        >>> x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 1.0]])
        >>> sorted(fit_hierarchy(x, ["oak", "elm", "fly", "bee"], (2,)).members("level_1").values())
        [('bee', 'fly'), ('elm', 'oak')]
    """
    x = torch.as_tensor(embedding)
    if x.ndim != 2 or len(x) != len(label):
        raise ShapeError(f"embeddings are {tuple(x.shape)} for {len(label)} labels: give a row for each label.")
    if not bool(torch.isfinite(x).all()):
        raise DataError("an embedding holds a value that is not finite: a class mean would not be a number.")
    (code,), classes = codes_of(label)
    check_fit(sizes, method, space, n_classes=len(classes))
    unit, levels, own = space == "unit", list[Tensor](), torch.arange(len(classes))
    means = centres_of(in_space(x, unit=unit), code, len(classes), unit=unit)
    for parent in clusters_of_clusters(means, sizes, method, unit=unit, seed=seed):
        own = parent[own]
        levels.append(own)
    return hierarchy_from_codes([name for name in classes if not isinstance(name, bytes)], [level.tolist() for level in levels])


def check_fit(sizes: Sequence[int], method: str, space: str, *, n_classes: int | None = None) -> None:
    """Find mistakes in the settings of `fit_hierarchy`, before anything is embedded if `n_classes` is not yet known.

    Raises:
        ConfigError: says which, and what would do.
    """
    if method not in CLUSTERINGS:
        raise ConfigError(f"method = {method!r}: {did_you_mean(method, CLUSTERINGS)}")
    if space not in SPACES:
        raise ConfigError(f"space = {space!r}: {did_you_mean(space, SPACES)}")
    falls = all(coarse < fine for fine, coarse in pairwise(sizes))
    if not sizes or not falls or sizes[-1] < 2 or (n_classes is not None and sizes[0] > n_classes):
        most = "" if n_classes is None else f" of at most {n_classes}, the number of classes"
        raise ConfigError(f"sizes = {list(sizes)}: give falling numbers of groups{most} and at least 2, the finest level first.")
