"""Groups dealt at random: the control that tells grouping from good grouping."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from jaxtyping import Int
from torch import Tensor

from kinfold.core.clustering import check_sizes
from kinfold.core.hierarchy import Hierarchy, Name, hierarchy_from_groups


def random_hierarchy(classes: Sequence[Name], sizes: Sequence[int], *, seed: int) -> Hierarchy:
    """Return a hierarchy dealt at random, groups as even as they go; the levels are called `level_1` (the finest), `level_2` and so on.

    Args:
        classes: names.
        sizes: number of groups of each level, the finest first.
        seed: another one deals another hierarchy.

    Raises:
        ConfigError: more groups than there are things to group, or none.

    Example:
        >>> random_hierarchy(range(7), (3, 2), seed=0).sizes
        (3, 2)
    """
    check_sizes(sizes, len(classes), "sizes")
    generator, codes = torch.Generator().manual_seed(seed), torch.arange(len(classes))
    groups = dict[str, list[int]]()
    for i, (below, size) in enumerate(pairwise((len(classes), *sizes)), start=1):
        codes = random_codes(below, size, generator=generator)[codes]
        groups[f"level_{i}"] = cast("list[int]", codes.tolist())  # pyright: ignore[reportUnknownMemberType]
    return hierarchy_from_groups(classes, groups)


def random_codes(n: int, n_clusters: int, *, generator: torch.Generator) -> Int[Tensor, " n"]:
    """Deal n things to clusters at random, as evenly as possible: the control for a clustering.

    Example:
        >>> torch.bincount(random_codes(7, 3, generator=torch.Generator().manual_seed(0))).tolist()
        [3, 2, 2]
    """
    code = torch.empty(n, dtype=torch.long)
    code[torch.randperm(n, generator=generator)] = torch.arange(n) % n_clusters
    return code
