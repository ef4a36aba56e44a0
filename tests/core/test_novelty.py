"""Numbers about made-up classes, against loops."""

import math
import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.core.novelty import own_similarity, real_similarity, within_variance
from kinfold.core.similarity import dot


def unit(row):
    length = math.sqrt(sum(v * v for v in row))
    return [v / length for v in row]


def cosine(a, b):
    return sum(p * q for p, q in zip(unit(a), unit(b), strict=True))


def drawn(n, seed):
    source = random.Random(seed)
    return [[source.gauss(0, 1) for _ in range(4)] for _ in range(n)]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=15), st.integers(0, 99))
def test_similarity_to_the_own_proxy_is_averaged_over_classes(labels, seed):
    x, proxies = drawn(len(labels), seed), drawn(4, seed + 1)
    by_class = [
        [cosine(row, proxies[c]) for row, label in zip(x, labels, strict=True) if label == c] for c in sorted(set(labels))
    ]
    found = own_similarity(torch.tensor(x), torch.tensor(labels), torch.tensor(proxies))
    assert found.mean == pytest.approx(sum(sum(each) / len(each) for each in by_class) / len(by_class), abs=1e-5)
    assert found.minimum == pytest.approx(sum(map(min, by_class)) / len(by_class), abs=1e-5)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_similarity_to_real_proxies_has_mean_maximum_and_nearest(n, c, seed):
    novel, real = drawn(n, seed), drawn(c, seed + 1)
    sims = [[cosine(one, other) for other in real] for one in novel]
    found = real_similarity(torch.tensor(novel), torch.tensor(real))
    assert found.mean == pytest.approx(sum(map(sum, sims)) / (n * c), abs=1e-5)
    assert found.maximum == pytest.approx(sum(map(max, sims)) / n, abs=1e-5)
    assert found.nearest.tolist() == [row.index(max(row)) for row in sims]


def test_another_similarity_may_be_used():
    assert real_similarity(torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 0.0]]), similarity=dot).maximum == 6.0


@given(st.lists(st.integers(0, 3), min_size=2, max_size=15), st.integers(0, 99))
def test_variance_within_classes_is_unbiased_and_of_unit_vectors(labels, seed):
    x = drawn(len(labels), seed)
    expected = []
    for c in sorted(set(labels)):
        rows = [unit(row) for row, label in zip(x, labels, strict=True) if label == c]
        if len(rows) >= 2:
            mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
            expected.append(sum((v - m) ** 2 for row in rows for v, m in zip(row, mean, strict=True)) / (len(rows) - 1))
    assert within_variance(torch.tensor(x), torch.tensor(labels)).tolist() == pytest.approx(expected, abs=1e-4)
