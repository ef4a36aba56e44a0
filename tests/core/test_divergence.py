"""Divergences: each against its definition in plain loops, where they vanish, what they push, and what they cannot judge."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.distributions import Independent, Normal, kl_divergence
from torch.nn.functional import normalize

from kinfold.core.divergence import DIVERGENCES, class_statistics, classwise_kl, gauss_kl, gaussian_kl, mmd, sliced_wasserstein

D = 5


def sides(n=12, m=9, seed=0, shift=0.3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    x = normalize(torch.randn(n, D, generator=generator, dtype=dtype) + shift, dim=1)
    y = normalize(torch.randn(m, D, generator=generator, dtype=dtype), dim=1)
    return x, torch.arange(n) % 3, y, torch.arange(m) % 2


def moments(rows):
    """Mean and variance of each column, by loops."""
    columns = list(zip(*rows, strict=True))
    mean = [sum(column) / len(column) for column in columns]
    return mean, [sum((value - m) ** 2 for value in column) / len(column) for column, m in zip(columns, mean, strict=True)]


def kl(one, other, eps):
    (m, v), (n, w) = one, other
    terms = [
        ((a + eps) + (b - c) ** 2) / (d + eps) - 1 + math.log((d + eps) / (a + eps))
        for a, b, c, d in zip(v, m, n, w, strict=True)
    ]
    return sum(terms) / (2 * len(terms))


def test_the_kl_of_diagonal_gaussians_is_torchs_a_dimension():
    generator = torch.Generator().manual_seed(0)
    m, n = torch.randn(4, D, generator=generator), torch.randn(4, D, generator=generator)
    v, w = torch.rand(4, D, generator=generator) + 0.1, torch.rand(4, D, generator=generator) + 0.1
    torch_kl = kl_divergence(Independent(Normal(m, v.sqrt()), 1), Independent(Normal(n, w.sqrt()), 1)) / D
    torch.testing.assert_close(gaussian_kl(m, v, n, w), torch_kl)


def test_gauss_kl_is_the_formula_of_the_pooled_vectors():
    x, x_label, y, y_label = sides()
    expected = kl(moments(x.tolist()), moments(y.tolist()), 1e-6)
    assert float(gauss_kl(x, x_label, y, y_label)) == pytest.approx(expected, rel=1e-9)


def test_classwise_kl_is_the_mean_over_pairs_of_classes_with_two_vectors():
    x, x_label, y, y_label = sides()
    x_label = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 7])  # class 7 has one
    groups = [
        [moments(z[label == c].tolist()) for c in classes]
        for z, label, classes in ((x, x_label, (0, 1, 2)), (y, y_label, (0, 1)))
    ]
    expected = sum(kl(a, b, 1e-4) for a in groups[0] for b in groups[1]) / 6
    assert float(classwise_kl(x, x_label, y, y_label)) == pytest.approx(expected, rel=1e-9)


def test_mmd_is_the_unbiased_estimate():
    x, x_label, y, y_label = sides()
    widths = (0.5, 1.0)

    def kernel(a, b):
        square = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
        return sum(math.exp(-square / (2 * s * s)) for s in widths) / len(widths)

    def within(rows):
        return sum(kernel(a, b) for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j) / (len(rows) * (len(rows) - 1))

    one, two = x.tolist(), y.tolist()
    expected = within(one) + within(two) - 2 * sum(kernel(a, b) for a in one for b in two) / (len(one) * len(two))
    assert float(mmd(x, x_label, y, y_label, widths=widths)) == pytest.approx(expected, rel=1e-9)


def test_sliced_wasserstein_is_the_mean_squared_gap_of_sorted_projections():
    x, x_label, y, y_label = sides(8, 8)
    found = sliced_wasserstein(x, x_label, y, y_label, n_slices=3, generator=torch.Generator().manual_seed(4))
    direction = torch.randn(D, 3, generator=torch.Generator().manual_seed(4)).double()
    total = 0.0
    for k in range(3):
        w = direction[:, k] / direction[:, k].norm()
        one, two = sorted((x @ w).tolist()), sorted((y @ w).tolist())
        total += sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) / len(one)
    assert float(found) == pytest.approx(D * total / 3, rel=1e-6)


def test_a_shift_by_t_costs_t_squared_of_sliced_wasserstein():
    x, x_label, _, _ = sides(40)
    shift = torch.zeros(D, dtype=torch.float64)
    shift[0] = 0.5
    found = sliced_wasserstein(x + shift, x_label, x, x_label, n_slices=4000, generator=torch.Generator().manual_seed(0))
    assert float(found) == pytest.approx(0.25, rel=0.1)


def test_sides_of_different_sizes_are_compared_at_quantiles():
    middles = (torch.arange(8) + 0.5) / 4 - 1  # of eight equal parts of [-1, 1]
    one = middles[:, None].expand(8, D).contiguous()
    two = torch.linspace(-1, 1, 4000)[:, None].expand(4000, D).contiguous()
    label = torch.zeros(1, dtype=torch.long)
    found = sliced_wasserstein(one, label.expand(8), two, label.expand(4000), generator=torch.Generator().manual_seed(0))
    assert float(found) < 1e-5


@pytest.mark.parametrize("name", ["gauss_kl", "sliced_wasserstein"])
def test_equal_sides_cost_nothing(name):
    x, x_label, _, _ = sides()
    assert float(DIVERGENCES[name](x, x_label, x, x_label)) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", sorted(DIVERGENCES))
class TestEveryDivergence:
    def test_it_falls_when_the_generated_come_nearer(self, name):
        values = [float(DIVERGENCES[name](*sides(60, 60, shift=shift), **drawn(name))) for shift in (2.0, 1.0, 0.0)]
        assert values == sorted(values, reverse=True)

    def test_its_gradient_is_that_of_small_steps(self, name):
        x, x_label, y, y_label = sides(7, 6)
        function = DIVERGENCES[name]
        assert torch.autograd.gradcheck(lambda z: function(z, x_label, y, y_label, **drawn(name)), x.requires_grad_())

    @pytest.mark.parametrize("n", [0, 1])
    def test_a_side_without_a_spread_gives_zero_with_a_graph(self, name, n):
        x, x_label, y, y_label = sides()
        x.requires_grad_()
        if name == "sliced_wasserstein":  # one vector has quantiles
            n = 0
        found = DIVERGENCES[name](x, x_label, y[:n], y_label[:n])
        found.backward()
        assert float(found.detach()) == 0.0
        assert torch.equal(x.grad, torch.zeros_like(x))

    def test_half_precision_is_computed_in_single(self, name):
        x, x_label, y, y_label = sides(dtype=torch.float32)
        half = DIVERGENCES[name](x.half(), x_label, y.half(), y_label, **drawn(name))
        assert half.dtype == torch.float32
        torch.testing.assert_close(half, DIVERGENCES[name](x, x_label, y, y_label, **drawn(name)), rtol=0.02, atol=0.02)

    def test_constant_vectors_stay_finite(self, name):
        x = torch.ones(6, D, requires_grad=True)
        label = torch.tensor([0, 0, 0, 1, 1, 1])
        found = DIVERGENCES[name](x, label, torch.ones(6, D), label)
        found.backward()
        assert torch.isfinite(found)
        assert torch.isfinite(x.grad).all()


def drawn(name):
    return {"generator": torch.Generator().manual_seed(2)} if name == "sliced_wasserstein" else {}


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.integers(1, 3))
def test_class_statistics_are_those_of_each_class(labels, least):
    x = torch.randn(len(labels), 3, generator=torch.Generator().manual_seed(len(labels)), dtype=torch.float64)
    mean, variance = class_statistics(x, torch.tensor(labels), least=least)
    kept = [c for c in sorted(set(labels)) if labels.count(c) >= least]
    assert len(mean) == len(variance) == len(kept)
    for row, c in enumerate(kept):
        own = moments([each for each, label in zip(x.tolist(), labels, strict=True) if label == c])
        assert mean[row].tolist() == pytest.approx(own[0], abs=1e-12)
        assert variance[row].tolist() == pytest.approx(own[1], abs=1e-12)
