"""How a batch is spread, against plain loops and numpy's singular values; defined on every batch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.core.health import alignment, effective_rank, similarity_gap, uniformity


def unit(rows):
    lengths = [math.sqrt(sum(v * v for v in row)) for row in rows]
    return [[v / length if length else 0.0 for v in row] for row, length in zip(rows, lengths, strict=True)]


def mean(values):
    return sum(values) / len(values) if values else math.nan


def square_distance(u, v):
    return sum((a - b) ** 2 for a, b in zip(u, v, strict=True))


def rank_by_numpy(rows):
    u = np.array(unit(rows))
    values = np.linalg.svd(u - u.mean(axis=0), compute_uv=False)
    p = values / values.sum()
    return math.exp(-sum(v * math.log(v) for v in p if v > 1e-12))


def loops(rows, label, item):
    """Return alignment, uniformity, mean positive and mean negative cosine."""
    u, n = unit(rows), len(rows)
    positive = [(i, j) for i in range(n) for j in range(n) if item[i] != item[j] and label[i] == label[j]]
    negative = [(i, j) for i in range(n) for j in range(n) if item[i] != item[j] and label[i] != label[j]]
    cosines = [[np.dot(u[i], u[j]) for i, j in pairs] for pairs in (positive, negative)]
    spread = [math.exp(-2 * square_distance(u[i], u[j])) for i in range(n) for j in range(i)]
    return [
        mean([square_distance(u[i], u[j]) for i, j in positive]),
        math.log(mean(spread)),
        *(mean(each) for each in cosines),
    ]


def batches():
    return st.tuples(st.integers(3, 12), st.integers(2, 6), st.integers(0, 10_000))


def drawn(shape, dtype=torch.float64):
    n, d, seed = shape
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=dtype) + torch.randn(d, generator=generator, dtype=dtype)


@settings(max_examples=40, deadline=None)
@given(batches())
def test_the_effective_rank_is_that_of_numpys_singular_values_and_in_its_range(shape):
    x = drawn(shape)
    rank = float(effective_rank(x))
    assert rank == pytest.approx(rank_by_numpy(x.tolist()), rel=1e-9)
    assert 1 - 1e-9 <= rank <= min(shape[0] - 1, shape[1]) + 1e-9


@settings(max_examples=40, deadline=None)
@given(batches())
def test_pair_measures_equal_their_sums_as_loops(shape):
    x = drawn(shape)
    n = shape[0]
    label, item = torch.arange(n) % 2, torch.arange(n)
    item[-1] = 0  # row n − 1 is another view of image 0
    label[-1] = 0
    found = similarity_gap(x, label, item)
    expected = loops(x.tolist(), label.tolist(), item.tolist())
    ours = [alignment(x, label, item), uniformity(x), found.positive, found.negative]
    for ours_each, theirs in zip(ours, expected, strict=True):
        assert float(ours_each) == pytest.approx(theirs, rel=1e-9, abs=1e-12, nan_ok=True)
    assert float(found.gap) == pytest.approx(expected[2] - expected[3], abs=1e-12, nan_ok=True)


@settings(max_examples=25, deadline=None)
@given(batches(), st.floats(0.01, 100))
def test_lengths_and_the_choice_of_axes_change_nothing(shape, factor):
    x = drawn(shape)
    turned = torch.linalg.qr(drawn((shape[1], shape[1], shape[2] + 1)))[0]
    other = (x * torch.linspace(1, factor, len(x), dtype=x.dtype)[:, None]) @ turned
    label = torch.arange(len(x)) % 2
    for measure in (effective_rank, uniformity, lambda x: alignment(x, label), lambda x: similarity_gap(x, label).gap):
        assert float(measure(other)) == pytest.approx(float(measure(x)), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_k_directions_of_equal_spread_have_rank_k(k):
    x = torch.cat([torch.eye(k, 8), -torch.eye(k, 8)])
    assert float(effective_rank(x)) == pytest.approx(k, rel=1e-6)


def test_a_direction_that_all_rows_share_does_not_count():
    x = torch.cat([torch.eye(3), -torch.eye(3)]) * 0.1
    shared = torch.cat([x, torch.full((6, 1), 10.0)], dim=1)
    assert float(effective_rank(shared)) == pytest.approx(3.0, rel=1e-3)


def test_even_rows_and_equal_rows_are_the_ends_of_uniformity():
    generator = torch.Generator().manual_seed(0)
    random = torch.randn(200, 256, generator=generator)
    assert float(uniformity(random)) == pytest.approx(-4.0, abs=0.05)
    assert float(uniformity(torch.ones(5, 3))) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rounding_is_no_direction(dtype):
    generator = torch.Generator().manual_seed(0)
    x = (torch.ones(64, 32) + 1e-7 * torch.randn(64, 32, generator=generator)).to(dtype)
    assert float(effective_rank(x)) == 1.0


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float16])
def test_autocast_and_half_embeddings_are_computed_in_float32(precision):
    x = drawn((16, 8, 0), torch.float32)
    label = torch.arange(16) % 4
    measures = (effective_rank, uniformity, lambda x: alignment(x, label), lambda x: similarity_gap(x, label).gap)
    for measure in measures:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(measure(x), measure(x)), "deterministic"
            inside = measure(x)
        assert torch.equal(inside, measure(x))
        half = x.to(precision)
        assert measure(half).dtype == torch.float32
        assert float(measure(half)) == pytest.approx(float(measure(half.float())), rel=1e-5)


@pytest.mark.parametrize("n", [0, 1])
def test_a_batch_of_less_than_two_rows_has_no_spread(n):
    x, label = torch.randn(n, 3), torch.zeros(n, dtype=torch.long)
    found = similarity_gap(x, label)
    values = [effective_rank(x), uniformity(x), alignment(x, label), found.positive, found.negative, found.gap]
    assert all(value.ndim == 0 and torch.isnan(value) for value in values)


def test_what_has_no_pair_is_nan_and_the_rest_is_not():
    x = torch.randn(4, 3)
    alone, together = torch.arange(4), torch.zeros(4, dtype=torch.long)
    assert torch.isnan(alignment(x, alone))
    assert torch.isnan(similarity_gap(x, alone).positive)
    assert torch.isfinite(similarity_gap(x, alone).negative)
    assert torch.isnan(similarity_gap(x, together).negative)
    assert torch.isfinite(similarity_gap(x, together).positive)
    same_image = torch.zeros(4, dtype=torch.long)
    assert torch.isnan(alignment(x, together, same_image)), "views of one image are no pair"


def test_zero_rows_are_points_at_the_origin():
    x = torch.tensor([[0.0, 0.0], [0.0, 0.0], [3.0, 0.0]])
    label = torch.tensor([0, 0, 0])
    assert float(alignment(x, label)) == pytest.approx(2 / 3)
    assert float(uniformity(x)) == pytest.approx(math.log((1 + 2 * math.exp(-2)) / 3))
    assert float(effective_rank(x)) == pytest.approx(1.0)
    assert float(effective_rank(torch.zeros(5, 4))) == 1.0
    assert float(similarity_gap(x, label).positive) == 0.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_entries_that_are_not_finite_give_nan_and_do_not_raise(value):
    x = torch.randn(4, 3)
    x[1, 2] = value
    assert torch.isnan(effective_rank(x))
    uniformity(x)
    alignment(x, torch.zeros(4, dtype=torch.long))


def test_nothing_is_changed_and_no_graph_is_kept():
    x = torch.randn(4, 3, requires_grad=True)
    before, label = x.detach().clone(), torch.tensor([0, 0, 1, 1])
    values = [effective_rank(x), uniformity(x), alignment(x, label), similarity_gap(x, label).gap]
    assert not any(value.requires_grad for value in values)
    assert torch.equal(x.detach(), before)
