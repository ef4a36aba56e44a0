"""Nearest divergences between classes, against plain loops."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.errors import DataError
from kinfold.evaluation.alignment import FLOOR, Side, alignment, nearest_kl, side_of


def gaussians(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(n, 3, generator=generator, dtype=torch.float64),
        torch.rand(n, 3, generator=generator, dtype=torch.float64) + 0.1,
    ]


def kl(m, v, n, w):
    terms = [a / c + (b - d) ** 2 / c - 1 + math.log(c / a) for a, b, c, d in zip(v, m, w, n, strict=True)]
    return sum(terms) / (2 * len(terms))


@settings(deadline=None)
@given(st.integers(2, 5), st.integers(2, 5), st.integers(0, 99))
def test_the_nearest_is_the_smallest_of_all_and_the_mean_is_over_the_first_side(n, m, seed):
    one, other = Side(*gaussians(n, seed), 9), Side(*gaussians(m, seed + 1), 9)
    a, b = (list(zip(side.mean.tolist(), side.variance.tolist(), strict=True)) for side in (one, other))
    forward = [min(kl(*x, *y) for y in b) for x in a]
    backward = [min(kl(*y, *x) for y in b) for x in a]
    found = alignment(one, other)
    assert found.forward == pytest.approx(sum(forward) / n)
    assert found.backward == pytest.approx(sum(backward) / n)
    assert found.forward_interval[0] <= found.forward + 1e-12 and found.forward <= found.forward_interval[1] + 1e-12
    assert (found.n_classes, found.n_vectors) == ((n, m), 9)


def test_a_class_is_no_neighbour_of_itself():
    side = Side(*gaussians(4, 0), 9)
    rows = list(zip(side.mean.tolist(), side.variance.tolist(), strict=True))
    expected = [min(kl(*x, *y) for j, y in enumerate(rows) if j != i) for i, x in enumerate(rows)]
    assert nearest_kl(side, side, itself=True)[0].tolist() == pytest.approx(expected)
    assert nearest_kl(side, side)[0].tolist() == pytest.approx([0.0] * 4, abs=1e-12)


def test_every_class_is_of_as_many_vectors_drawn_and_smaller_ones_are_left_out():
    x = torch.randn(25, 3, generator=torch.Generator().manual_seed(0))
    label = torch.tensor([7] * 10 + [2] * 10 + [5] * 5)
    found = side_of(x, label, n_vectors=10)
    assert found.mean.shape == (2, 3)
    unit = torch.nn.functional.normalize(x.double(), dim=1)
    torch.testing.assert_close(found.mean, torch.stack([unit[10:20].mean(dim=0), unit[:10].mean(dim=0)]))
    torch.testing.assert_close(found.variance, torch.stack([unit[10:20].var(dim=0), unit[:10].var(dim=0)]) + FLOOR)
    fewer = side_of(x, label, n_vectors=5)
    assert fewer.mean.shape == (3, 3)
    torch.testing.assert_close(fewer.mean[1], unit[20:].mean(dim=0))
    assert torch.equal(side_of(x, label, n_vectors=5, seed=3).mean, side_of(x, label, n_vectors=5, seed=3).mean)
    assert not torch.equal(side_of(x, label, n_vectors=5, seed=3).mean, fewer.mean)


@pytest.mark.parametrize("n", [1, 4])
def test_too_few_vectors_are_one_clear_error(n):
    with pytest.raises(DataError, match=rf"{n} vectors of each class: at least 2, and no more than the largest class has \(3\)"):
        side_of(torch.randn(6, 3), torch.tensor([0, 0, 0, 1, 1, 1]), n_vectors=n)
