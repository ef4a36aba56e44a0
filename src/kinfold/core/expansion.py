"""Embedding Expansion: points between images of a class, as further candidates for the hardest negative (Ko and Gu 2020)."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.core.interpolation import interpolate
from kinfold.records import Pairs, Similarity


class InnerPoints(NamedTuple):
    """Points between a row and the next one of its class.

    Attributes:
        embedding: the points, all of a row's one after the other.
        row: the row that each belongs to.
    """

    embedding: Float[Tensor, "k d"]
    row: Int[Tensor, " k"]


def next_of_class(label: Int[Tensor, " n"], item: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
    """Return for each row the next row of its class and of another item, counted around; the row itself where there is none.

    Example:
        >>> next_of_class(torch.tensor([0, 1, 0, 0]), torch.arange(4))
        tensor([2, 1, 3, 0])
    """
    n = len(label)
    row = torch.arange(n, device=label.device)
    fits = (label[:, None] == label) & (item[:, None] != item)
    steps = (row - row[:, None]) % n  # how far ahead, around
    steps = steps.masked_fill(~fits, n)
    nearest = steps.argmin(dim=1)
    return torch.where(fits.any(dim=1), nearest, row)


def inner_points(
    embedding: Float[Tensor, "n d"], label: Int[Tensor, " n"], item: Int[Tensor, " n"], *, n_points: int
) -> InnerPoints:
    """Return points that divide the way from each row to the next one of its class into equal parts, scaled back to length.

        x_k = normalise( (k x_i + (m + 1 − k) x_j) / (m + 1) ),   k = 1 … m

    The paper takes all pairs of a class; its released code takes neighbouring rows, as here, so that points grow with images and
    not with their square. A row without a partner has none.

    Args:
        embedding: the batch.
        label: class numbers.
        item: image numbers: views of one image are no pair.
        n_points: m.

    Example:
        >>> inner_points(torch.eye(2), torch.tensor([0, 0]), torch.arange(2), n_points=1).embedding
        tensor([[0.7071, 0.7071],
                [0.7071, 0.7071]])

    Reference:
        Ko, Gu, Embedding Expansion: Augmentation in Embedding Space for Deep Metric Learning, CVPR 2020, eq. 5 to 7.
    """
    partner = next_of_class(label, item)
    every = torch.arange(len(label), device=label.device)
    row = every[partner != every]
    one, other = embedding[row], embedding[partner[row]]
    points = [interpolate(one, other, k / (n_points + 1)) for k in range(1, n_points + 1)]
    if not points:
        return InnerPoints(embedding[:0], row[:0])
    return InnerPoints(torch.stack(points, dim=1).flatten(0, 1), row.repeat_interleave(n_points))


def expanded_similarities(  # noqa: PLR0913 (each is a choice of the method)
    embedding: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    item: Int[Tensor, " n"],
    pairs: Pairs,
    *,
    similarity: Similarity,
    n_points: int = 2,
    per: Literal["class", "image"] = "class",
) -> Float[Tensor, "n n"]:
    """Return the similarities of a batch to itself, with every negative as hard as the hardest of its copies.

        negative (i, j):   max over p in S_i, q in S_j of s(p, q);    positives: s(x_i, x_j), as they are

    `class`: S_i holds all rows of i's class and the points between them, as in the paper. `image`: it holds row i and the points
    between it and the next of its class, as in the released code; with no points that is s itself.

    Args:
        embedding: the batch.
        label: class numbers.
        item: image numbers.
        pairs: what is negative.
        similarity: larger = more alike.
        n_points: points between two rows.
        per: whose copies are looked at.

    Returns:
        The matrix; gradients reach the two points that were the hardest, and through them their parents.

    Example:
        >>> from kinfold.core.pairs import pairs_from_labels
        >>> from kinfold.core.similarity import cosine
        >>> x, label = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0, 1])
        >>> sim = expanded_similarities(x, label, torch.arange(3), pairs_from_labels(label, label), similarity=cosine)
        >>> sim[0].tolist()
        [1.0, 0.0, 1.0]
    """
    points = inner_points(embedding, label, item, n_points=n_points)
    every = torch.cat([embedding, points.embedding])
    rows = torch.arange(len(label), device=label.device)
    owner = torch.cat([rows, points.row])
    sim = similarity(every, every)
    code = distinct(label)[1] if per == "class" else rows
    hardest = _largest_of_blocks(sim, code[owner])
    return torch.where(pairs.negative, hardest[code][:, code], sim[: len(label), : len(label)])


def _largest_of_blocks(sim: Float[Tensor, "m m"], group: Int[Tensor, " m"]) -> Float[Tensor, "g g"]:
    """Return the largest entry of each pair of groups of rows and columns; gradients are shared among equals."""
    n = int(group.max()) + 1 if len(group) else 0
    by_row = sim.new_full((n, len(group)), -torch.inf).scatter_reduce(0, group[:, None].expand_as(sim), sim, "amax")
    return sim.new_full((n, n), -torch.inf).scatter_reduce(1, group[None].expand(n, -1), by_row, "amax")
