"""Proxy Synthesis: new classes mixed from two of a batch, as vectors and as proxies (Gu, Ko, Kim 2021)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.core.interpolation import interpolate


class MixedProxies(NamedTuple):
    """Synthetic classes of one vector each.

    Attributes:
        embedding: the vectors.
        proxies: the proxy of each vector's class, in the same order.
    """

    embedding: Float[Tensor, "k d"]
    proxies: Float[Tensor, "k d"]


class MixedClasses(NamedTuple):
    """Synthetic classes of several vectors.

    Attributes:
        embedding: the vectors.
        code: class of each, from 0.
    """

    embedding: Float[Tensor, "k d"]
    code: Int[Tensor, " k"]


def partners(label: Int[Tensor, " n"], *, shift: int = 0) -> tuple[Int[Tensor, " n"], Bool[Tensor, " n"]]:
    """Return a partner row for each row, each row being the partner of one, and where partners differ in class.

    Rows are put into the order in which their classes come first in the batch, and shifted by the size of the largest class: then
    partners differ wherever no class holds more than half of the batch. The numbers of the classes do not decide who meets.

    Args:
        label: class numbers.
        shift: further places; others give other partners.

    Example:
        >>> partners(torch.tensor([5, 5, 2, 7]))
        (tensor([2, 3, 0, 1]), tensor([True, True, True, True]))
    """
    n = len(label)
    _, code, count = distinct(label)
    first = torch.full((len(count),), n, device=label.device).scatter_reduce(
        0, code, torch.arange(n, device=label.device), "amin"
    )
    order = torch.argsort(first[code], stable=True)
    partner = torch.empty_like(order)
    partner[order] = order.roll(-(int(count.max()) + shift)) if n else order
    return partner, label[partner] != label


def mixed_with_proxies(
    embedding: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    proxies: Float[Tensor, "c d"],
    *,
    share: float,
    n: int,
) -> MixedProxies:
    """Return `n` classes of one vector, mixed from pairs of rows of different classes, and their proxies, mixed alike.

        x~ = normalise(λ x_i + (1 − λ) x_j),   p~ = normalise(λ p_(y_i) + (1 − λ) p_(y_j)),   y_i ≠ y_j

    Gradients reach both parents of both; nothing is detached.

    Args:
        embedding: the batch.
        label: rows of `proxies`.
        proxies: one a class.
        share: λ, one for the batch.
        n: how many; at most those there are: with more than one for each row, rows get further partners.

    Example:
        >>> x = torch.eye(2)
        >>> mixed_with_proxies(x, torch.tensor([0, 1]), x, share=1.0, n=2).proxies
        tensor([[1., 0.],
                [0., 1.]])

    Reference:
        Gu, Ko, Kim, Proxy Synthesis: Learning with Synthetic Classes for Deep Metric Learning, AAAI 2021.
    """
    rows, others = [label[:0]], [label[:0]]
    missing, shift = n, 0
    while missing > 0 and shift < len(label):
        partner, differs = partners(label, shift=shift)
        row = torch.arange(len(label), device=label.device)[differs][:missing]
        rows.append(row)
        others.append(partner[row])
        missing, shift = missing - len(row), shift + 1
    one, other = torch.cat(rows), torch.cat(others)
    proxy = proxies[label]
    return MixedProxies(interpolate(embedding[one], embedding[other], share), interpolate(proxy[one], proxy[other], share))


def mixed_classes(embedding: Float[Tensor, "n d"], label: Int[Tensor, " n"], *, share: float, n: int) -> MixedClasses:
    """Return `n` or a few fewer vectors of classes mixed from two classes, with as many vectors as the first of the two has.

    For pair losses, which need positives: class a is mixed with another class b, the k-th row of a with the k-th of b (counted
    around where b has fewer). Reconstructed: Proxy Synthesis was published for proxies alone.

    Args:
        embedding: the batch.
        label: class numbers.
        share: λ, one for the batch.
        n: how many vectors; classes are mixed in the order in which they come first until the next would be too many, each with the next one,
            then each with the one after it.

    Example:
        >>> mixed_classes(torch.eye(4), torch.tensor([0, 0, 1, 1]), share=0.5, n=4).code
        tensor([0, 0, 1, 1])
    """
    code, every = distinct(label)[1], torch.arange(len(label), device=label.device)
    members = [every[code == number] for number in torch.argsort(_first_rows(label))]
    rows, others, codes, left = [label[:0]], [label[:0]], [label[:0]], n
    for number in range(len(members) * (len(members) - 1)):
        place, step = number % len(members), number // len(members) + 1
        a, b = members[place], members[(place + step) % len(members)]
        if len(a) > left:
            break
        rows.append(a)
        others.append(b[torch.arange(len(a), device=b.device) % len(b)])
        codes.append(torch.full_like(a, number))
        left -= len(a)
    one, other = torch.cat(rows), torch.cat(others)
    return MixedClasses(interpolate(embedding[one], embedding[other], share), torch.cat(codes))


def _first_rows(label: Int[Tensor, " n"]) -> Int[Tensor, " c"]:
    """Return the row in which each class comes first, classes in the order of their numbers."""
    _, code, count = distinct(label)
    n = len(label)
    first = torch.full((len(count),), n, device=label.device)
    return first.scatter_reduce(0, code, torch.arange(n, device=label.device), "amin")
