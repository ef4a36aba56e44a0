"""Images that stand for a group of classes: those nearest to its mean direction."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from kinfold.core.hierarchy import Hierarchy, Name
from kinfold.errors import ConfigError, ShapeError
from kinfold.evaluation.typed import integers, tensor_of


def exemplars(
    embedding: Tensor | np.ndarray, label: Sequence[Name], hierarchy: Hierarchy, level: str, *, n: int = 5
) -> dict[Name, tuple[int, ...]]:
    """Choose, for each group of a level, the rows whose embeddings lie nearest to the group's mean direction.

        m_g = Σ over rows i of the group of x_i / ‖x_i‖,    nearest = largest cosine of x_i and m_g

    Rows of distinct classes come first: the best row of each class by cosine, then the second best of each, and so on. Equal ones
    keep the order of the rows.

    Args:
        embedding: (n_rows, d), a row for each image.
        label: class of each row; rows of classes that the hierarchy lacks are left out.
        hierarchy: of the classes.
        level: whose groups are shown.
        n: rows for each group, >= 1; fewer where it has fewer.

    Returns:
        Group → row numbers, the best first; groups without a row are left out.

    Raises:
        ConfigError: no such level, or `n` below 1.
        ShapeError: labels of another number than rows.

    Example:
        >>> from kinfold.core.hierarchy import hierarchy_from_groups
        >>> tree = hierarchy_from_groups(["oak", "elm", "fly"], {"kind": ["tree", "tree", "insect"]})
        >>> x = torch.tensor([[1.0, 0.1], [1.0, 0.2], [1.0, 0.8], [0.0, 1.0]])
        >>> exemplars(x, ["oak", "oak", "elm", "fly"], tree, "kind", n=2)
        {'tree': (1, 2), 'insect': (3,)}
    """
    if n < 1:
        raise ConfigError(f"n = {n}: at least one image of each group is shown.")
    x = normalize(torch.as_tensor(embedding).detach().cpu().double(), dim=1)
    if len(x) != len(label):
        raise ShapeError(f"there are {len(x)} embeddings and {len(label)} labels: give a label for each row.")
    group_of = dict(zip(hierarchy.classes, hierarchy.groups_of(level), strict=True))
    rows: dict[Name, list[int]] = {group: [] for group in hierarchy.levels[hierarchy.place_of(level)].groups}
    for row, name in enumerate(label):
        if name in group_of:
            rows[group_of[name]].append(row)
    return {group: _best(x, label, own, n) for group, own in rows.items() if own}


def _best(x: Tensor, label: Sequence[Name], rows: list[int], n: int) -> tuple[int, ...]:
    own = x[tensor_of(np.array(rows))]
    cosine = (own @ own.sum(dim=0)).round(decimals=12)  # equal ones, such as two rows and their mean, stay equal
    order = integers(cosine.argsort(descending=True, stable=True))
    seen: dict[Name, int] = {}
    ranked = list[tuple[int, int]]()
    for place, i in enumerate(order):
        rank = seen[label[rows[i]]] = seen.get(label[rows[i]], -1) + 1
        ranked.append((rank, place))
    return tuple(rows[order[place]] for _, place in sorted(ranked)[:n])
