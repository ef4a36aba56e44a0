from math import exp, inf, log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kinfold.core.reduce import (
    at_least_float32,
    masked_logsumexp,
    mean_over_active,
    mean_over_pairs,
    mean_over_rows,
    normalise,
    require_positive,
    sum_over_pairs,
)
from kinfold.errors import ConfigError

SHAPE = (3, 4)
matrices = arrays("float64", SHAPE, elements=st.floats(-30, 30))
weights = arrays("float64", SHAPE, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
masks = arrays("bool", SHAPE)


@given(x=matrices, weight=weights, keep=masks, dim=st.sampled_from([0, 1]))
def test_masked_logsumexp_is_the_logarithm_of_a_weighted_sum(x, weight, keep, dim):
    value = masked_logsumexp(torch.from_numpy(x), torch.from_numpy(keep), torch.from_numpy(weight), dim=dim)
    rows = zip(x.T, weight.T, keep.T, strict=True) if dim == 0 else zip(x, weight, keep, strict=True)
    sums = [sum(w * exp(e) for e, w, k in zip(*row, strict=True) if k) for row in rows]
    assert value.tolist() == pytest.approx([log(total) if total > 0 else -inf for total in sums], rel=1e-9, abs=1e-12)


@given(x=matrices, weight=weights, keep=masks, dim=st.sampled_from([0, 1]))
def test_masked_logsumexp_has_finite_gradients_that_vanish_outside_the_sum(x, weight, keep, dim):
    leaves = [torch.tensor(array, requires_grad=True) for array in (x, weight)]
    kept = torch.tensor(keep) & (leaves[1] > 0)
    value = masked_logsumexp(leaves[0], torch.tensor(keep), leaves[1], dim=dim)
    torch.nn.functional.softplus(value).sum().backward()
    for leaf in leaves:
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()
        assert (leaf.grad[~kept] == 0).all()


@pytest.mark.parametrize("size", [-1e4, 1e4])
def test_masked_logsumexp_does_not_overflow(size):
    x = torch.full((2, 3), size)
    keep = torch.tensor([[True, True, False], [True, False, False]])
    assert masked_logsumexp(x, keep, dim=1).tolist() == pytest.approx([size + log(2), size])


def test_an_ignored_or_silenced_giant_does_not_swallow_the_rest_of_a_sum():
    x, keep = torch.tensor([[1e4, 1e4, 1.0]]), torch.tensor([[False, True, True]])
    assert masked_logsumexp(x, keep, torch.tensor([[1.0, 0.0, 1.0]]), dim=1).item() == 1.0


def test_a_tiny_weight_is_not_lost():
    x, keep = torch.tensor([[90.0, 0.0]]), torch.tensor([[True, True]])
    weight = torch.tensor([[1e-38, 1.0]])
    assert masked_logsumexp(x, keep, weight, dim=1).item() == pytest.approx(log(1 + 1e-38 * exp(90)), rel=1e-5)


def test_a_half_precision_weight_is_not_rounded_again_by_its_logarithm():
    weight = torch.full((1, 3), 0.7, dtype=torch.bfloat16)
    value = masked_logsumexp(torch.zeros(1, 3), torch.ones(1, 3, dtype=torch.bool), weight, dim=1)
    assert value.item() == pytest.approx(log(3 * weight[0, 0].item()), rel=1e-6)


def test_a_nan_is_passed_on_and_not_hidden():
    x = torch.tensor([[float("nan"), 1.0]])
    assert masked_logsumexp(x, torch.tensor([[True, True]]), dim=1).isnan().all()


def test_means_divide_by_the_number_of_pairs_whatever_their_weights():
    term, keep = torch.tensor([1.0, 3.0, 100.0]), torch.tensor([True, True, False])
    assert mean_over_pairs(term, keep).item() == 2.0
    assert mean_over_pairs(term, keep, torch.tensor([2.0, 2.0, 2.0])).item() == 4.0
    assert mean_over_pairs(term, keep, torch.tensor([0.0, 1.0, 1.0])).item() == 1.5
    assert sum_over_pairs(term, keep, torch.tensor([0.0, 1.0, 1.0])).item() == 3.0


def test_mean_over_active_counts_terms_above_zero_also_where_their_weight_is_zero():
    term, keep = torch.tensor([1.0, 3.0, 0.0, 9.0]), torch.tensor([True, True, True, False])
    assert mean_over_active(term, keep).item() == 2.0
    assert mean_over_active(term, keep, torch.tensor([0.0, 1.0, 1.0, 1.0])).item() == 1.5


@pytest.mark.parametrize("mean", [mean_over_pairs, mean_over_active, sum_over_pairs])
def test_nothing_to_average_gives_zero_with_a_graph(mean):
    term = torch.full((2, 2), inf, requires_grad=True)
    value = mean(term, torch.zeros(2, 2, dtype=torch.bool))
    value.backward()
    assert value.item() == 0.0
    assert term.grad is not None
    assert (term.grad == 0).all()


def test_mean_over_rows_counts_every_row_and_survives_none():
    assert mean_over_rows(torch.tensor([3.0, 0.0, 0.0])).item() == 1.0
    assert mean_over_rows(torch.zeros(0)).item() == 0.0


@pytest.mark.parametrize("size", [1e-11, 1e-3, 1e25, 1e38])
def test_normalise_gives_unit_rows_at_any_size(size):
    row = torch.tensor([[0.6, -0.8, 0.0]])
    torch.testing.assert_close(normalise(size * row), row)


def test_normalise_keeps_a_zero_row_and_gives_it_a_zero_gradient():
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    (normalise(x) * torch.tensor([[1.0, 2.0], [1.0, 2.0]])).sum().backward()
    assert x.grad is not None
    assert x.grad[0].tolist() == [0.0, 0.0]
    torch.testing.assert_close(x.grad[1], torch.tensor([1.0, 2.0]) / 5 - torch.tensor([0.6, 0.8]) * 2.2 / 5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_at_least_float32_never_coarsens(dtype):
    expected = torch.float64 if dtype == torch.float64 else torch.float32
    assert at_least_float32(torch.ones(2, dtype=dtype)).dtype == expected


def test_require_positive_names_the_value_that_is_not():
    require_positive(alpha=0.1, beta=3.0)
    with pytest.raises(ConfigError, match=r"`beta` is 0\.0: it must be larger than 0"):
        require_positive(alpha=0.1, beta=0.0)
