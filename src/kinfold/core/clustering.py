"""Clustering of vectors: k-means with a generator of its own, and its two steps, assignment and centroids."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.reduce import at_least_float32, normalise
from kinfold.errors import ConfigError

STARTS = 3
"""k-means is begun so many times, and the tightest result kept."""
MAX_ITERATIONS = 100
BLOCK = 1 << 24
"""Entries of the table of distances that are held at once (64 MB of float32)."""


def in_space(x: Float[Tensor, "n d"], *, unit: bool) -> Float[Tensor, "n d"]:
    """Return rows as they are, or with length 1 (a zero row stays zero), without a graph and in at least float32."""
    x = at_least_float32(x.detach())
    return normalise(x) if unit else x


def assign(x: Float[Tensor, "n d"], centre: Float[Tensor, "k d"]) -> Int[Tensor, " n"]:
    """Return the number of the nearest centre of each row: argmin_j ‖x_i − c_j‖².

    One matrix product, since ‖x − c‖² = ‖x‖² − 2 (x · c − ‖c‖² / 2). Of centres at one distance the first is taken, up to rounding.

    Example:
        >>> assign(torch.tensor([[0.0], [0.9], [5.0]]), torch.tensor([[0.0], [4.0]]))
        tensor([0, 0, 1])
    """
    half = centre.square().sum(dim=1) / 2
    rows = max(1, BLOCK // max(1, len(centre)))
    found = [torch.addmm(half, x[i : i + rows], centre.T, beta=-1).argmax(dim=1) for i in range(0, max(1, len(x)), rows)]
    return found[0] if len(found) == 1 else torch.cat(found)


def recentre(
    x: Float[Tensor, "n d"], code: Int[Tensor, " n"], centre: Float[Tensor, "k d"], *, unit: bool = False
) -> Float[Tensor, "k d"]:
    """Return the mean of each cluster's rows; a cluster without rows, or whose mean has no direction, keeps its centre.

    Args:
        x: rows.
        code: cluster of each row.
        centre: the centres as they are.
        unit: bring the means to length 1 (spherical k-means), so that the nearest centre is the one of largest cosine.

    Example:
        >>> recentre(torch.tensor([[0.0], [2.0]]), torch.tensor([0, 0]), torch.tensor([[9.0], [7.0]]))
        tensor([[1.],
                [7.]])
    """
    total, count = _sums(x, code, len(centre))
    mean = total / count.clamp(min=1).unsqueeze(1)
    keeps = count == 0
    if unit:
        mean = normalise(mean)
        keeps = keeps | (mean == 0).all(dim=1)
    return torch.where(keeps.unsqueeze(1), centre, mean)


def refill(
    x: Float[Tensor, "n d"], code: Int[Tensor, " n"], centre: Float[Tensor, "k d"], *, unit: bool = False
) -> tuple[Int[Tensor, " n"], Float[Tensor, "k d"]]:
    """Give one empty cluster the far part of the largest one (ODC, Zhan et al. 2020, splits by 2-means too).

    The largest cluster is split by 2-means, begun at its row farthest from its centre and the row farthest from that one. Where no
    cluster is empty, or the largest has no two distinct rows, everything stays.

    Args:
        x: rows.
        code: cluster of each row.
        centre: centres.
        unit: see `recentre`.

    Returns:
        Codes and centres; those given are not changed.
    """
    count = torch.bincount(code, minlength=len(centre))
    largest, empty = int(count.argmax()), int(count.argmin())
    if count[empty] or count[largest] < 2:
        return code, centre
    row = (code == largest).nonzero().flatten()
    inside = x[row]
    far = inside[_farthest(inside, centre[largest])]
    seeds = torch.stack([inside[_farthest(inside, far)], far])
    if torch.equal(seeds[0], seeds[1]):
        return code, centre
    half, seeds = _lloyd(inside, seeds, unit=unit)
    code, centre = code.clone(), centre.clone()
    code[row[half == 1]] = empty
    centre[largest], centre[empty] = seeds[0], seeds[1]
    return code, centre


def centres_of(x: Float[Tensor, "n d"], code: Int[Tensor, " n"], n_clusters: int, *, unit: bool = False) -> Float[Tensor, "k d"]:
    """Return the centres of clusters of any origin; those without rows lie on the rows that are farthest from their own centres."""
    count = torch.bincount(code, minlength=n_clusters)
    centre = recentre(x, code, x.new_zeros(n_clusters, x.shape[1]), unit=unit)
    empty = (count == 0).nonzero().flatten()
    if len(empty):
        distance = (x - centre[code]).square().sum(dim=1)
        rows = distance.argsort(descending=True, stable=True)
        centre[empty] = x[rows[torch.arange(len(empty), device=x.device) % len(rows)]]
    return centre


def kmeans(x: Float[Tensor, "n d"], n_clusters: int, *, generator: torch.Generator, unit: bool = False) -> Int[Tensor, " n"]:
    """Return the cluster of each row after k-means: the tightest of 3 starts (k-means++), Lloyd's steps until nothing moves.

    The result depends on the rows and the generator alone; it is found on the rows' device. With fewer distinct rows than clusters
    some clusters have no row.

    Args:
        x: rows; brought to length 1 first if `unit` (spherical k-means).
        n_clusters: 1 to n.
        generator: on the CPU.
        unit: cluster directions.

    Raises:
        ConfigError: more clusters than rows, or none.

    Example:
        >>> x = torch.tensor([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.1, 5.0]])
        >>> code = kmeans(x, 2, generator=torch.Generator().manual_seed(0))
        >>> bool(code[0] == code[1]), bool(code[2] == code[3]), bool(code[0] == code[2])
        (True, True, False)

    Reference:
        Arthur and Vassilvitskii, k-means++: The Advantages of Careful Seeding, SODA 2007; Lloyd, 1982.
    """
    if not 1 <= n_clusters <= len(x):
        raise ConfigError(
            f"{n_clusters} clusters of {len(x)} vectors: there must be at least 1, and at most one for each vector."
        )
    x = in_space(x, unit=unit)
    found = [_lloyd(x, x[_plus_plus(x, n_clusters, generator)], unit=unit) for _ in range(STARTS if n_clusters > 1 else 1)]
    spread = [float((x - centre[code]).square().sum()) for code, centre in found]
    return found[spread.index(min(spread))][0]


def check_sizes(sizes: Sequence[int], n_classes: int, name: str) -> None:
    """Refuse numbers of groups, finest level first, of which one is below 1 or above the number of things that it groups.

    Raises:
        ConfigError: names the sizes.
    """
    if not all(1 <= size <= below for below, size in pairwise((n_classes, *sizes))):
        raise ConfigError(f"{name} = {list(sizes)} for {n_classes} classes: each from 1 to the size of the level below it.")


def _sums(x: Tensor, code: Tensor, n_clusters: int) -> tuple[Tensor, Tensor]:
    total = x.new_zeros(n_clusters, x.shape[1])
    if x.device.type == "cpu":
        total.index_add_(0, code, x)
    else:  # adds in a fixed order on a GPU as well
        total.index_put_((code,), x, accumulate=True)
    return total, torch.bincount(code, minlength=n_clusters)


def _lloyd(x: Tensor, centre: Tensor, *, unit: bool) -> tuple[Tensor, Tensor]:
    code = assign(x, centre)
    for _ in range(MAX_ITERATIONS):
        centre = recentre(x, code, centre, unit=unit)
        before, code = code, assign(x, centre)
        if torch.equal(before, code):
            break
    return code, centre


def _plus_plus(x: Tensor, n_clusters: int, generator: torch.Generator) -> Tensor:
    """Draw rows one after the other, each with a chance in proportion to its squared distance to those drawn before."""
    drawn = [int(torch.randint(len(x), (1,), generator=generator))]
    nearest = (x - x[drawn[0]]).square().sum(dim=1)
    while len(drawn) < n_clusters:
        weight = nearest.double().cpu()
        if float(weight.sum()) <= 0:  # all rows are drawn already, up to copies
            weight = torch.ones_like(weight)
        edge = weight.cumsum(dim=0)  # `multinomial` takes no more than 2^24 rows
        at = torch.rand(1, generator=generator, dtype=torch.float64) * edge[-1]
        drawn.append(min(int(torch.searchsorted(edge, at, right=True)), len(x) - 1))
        nearest = torch.minimum(nearest, (x - x[drawn[-1]]).square().sum(dim=1))
    return torch.tensor(drawn, device=x.device)


def _farthest(x: Tensor, point: Tensor) -> int:
    return int((x - point).square().sum(dim=1).argmax())
