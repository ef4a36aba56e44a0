"""Proxy Synthesis as pure functions: who is mixed with whom, and what comes of it, against loops."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.core.reduce import normalise
from kinfold.core.synthesis import mixed_classes, mixed_with_proxies, partners

LABELS = st.lists(st.integers(0, 6), min_size=1, max_size=24)


@given(LABELS)
def test_partners_are_a_permutation_of_different_classes_wherever_that_can_be(labels):
    label = torch.tensor(labels)
    partner, differs = partners(label)
    assert sorted(partner.tolist()) == list(range(len(labels)))
    assert differs.tolist() == [labels[i] != labels[j] for i, j in enumerate(partner.tolist())]
    if max(Counter(labels).values()) <= len(labels) / 2:
        assert differs.all()


@given(LABELS, st.permutations(range(7)))
def test_numbers_of_the_classes_do_not_decide_who_meets(labels, renamed):
    one = partners(torch.tensor(labels))[0]
    other = partners(torch.tensor([renamed[label] for label in labels]))[0]
    assert torch.equal(one, other)


def drawn(labels, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(labels), 4, generator=generator, dtype=torch.float64)


def mixed(a, b, share):
    return normalise(share * normalise(a[None]) + (1 - share) * normalise(b[None]))[0]


def test_a_synthetic_class_is_the_mixture_of_two_rows_and_of_their_proxies():
    labels = [0, 2, 1, 2, 0, 3]
    x, label, proxies = normalise(drawn(labels)), torch.tensor(labels), normalise(drawn([0] * 4, seed=1))
    found = mixed_with_proxies(x, label, proxies, share=0.3, n=6)
    partner = partners(label)[0].tolist()
    for i, j in enumerate(partner):
        torch.testing.assert_close(found.embedding[i], mixed(x[i], x[j], 0.3))
        torch.testing.assert_close(found.proxies[i], mixed(proxies[labels[i]], proxies[labels[j]], 0.3))


@given(LABELS, st.integers(0, 60))
def test_as_many_as_asked_for_or_all_there_are_and_never_of_one_class(labels, n):
    label, one_hot = torch.tensor(labels), torch.eye(7, dtype=torch.float64)
    found = mixed_with_proxies(one_hot[label], label, one_hot, share=0.5, n=n)
    n_pairs = sum(a != b for a in labels for b in labels)
    assert len(found.embedding) == len(found.proxies) == min(n, n_pairs)
    assert ((found.proxies > 0).sum(dim=1) == 2).all()
    torch.testing.assert_close(found.embedding, found.proxies)


def test_gradients_reach_both_parents_of_both():
    label = torch.tensor([0, 1])
    x, proxies = drawn([0, 1]).requires_grad_(), drawn([0, 1, 2], seed=1).requires_grad_()
    found = mixed_with_proxies(x, label, proxies, share=0.3, n=1)
    (found.embedding[0, 0] + found.proxies[0, 0]).backward()
    assert x.grad.any(dim=1).all()
    assert proxies.grad.any(dim=1).tolist() == [True, True, False]


def test_nothing_can_be_mixed_of_one_class_or_no_image():
    for labels in ([], [3], [3, 3, 3]):
        label = torch.tensor(labels, dtype=torch.long)
        x = torch.randn(len(labels), 4)
        assert len(mixed_with_proxies(x, label, torch.randn(4, 4), share=0.5, n=5).embedding) == 0
        assert len(mixed_classes(x, label, share=0.5, n=5).embedding) == 0


def test_over_pairs_classes_are_mixed_with_classes_image_by_image():
    labels = [4, 4, 1, 1, 1, 6]
    x, label = normalise(drawn(labels)), torch.tensor(labels)
    found = mixed_classes(x, label, share=0.3, n=6)
    expected = [(0, 2), (1, 3), (2, 5), (3, 5), (4, 5), (5, 0)]  # 4 with 1, 1 with 6 (which has one image), 6 with 4
    torch.testing.assert_close(found.embedding, torch.stack([mixed(x[i], x[j], 0.3) for i, j in expected]))
    assert found.code.tolist() == [0, 0, 1, 1, 1, 2]


@given(LABELS, st.integers(0, 60))
def test_over_pairs_no_two_synthetic_classes_are_alike(labels, n):
    label, one_hot = torch.tensor(labels), torch.eye(7, dtype=torch.float64)
    found = mixed_classes(one_hot[label], label, share=0.3, n=n)
    assert len(found.code) <= n
    by_class = {int(code): found.embedding[found.code == code] for code in found.code.unique()}
    assert all((rows == rows[0]).all() for rows in by_class.values())
    distinct = {tuple(rows[0].tolist()) for rows in by_class.values()}
    assert len(distinct) == len(by_class)
    assert all(sum(value > 0 for value in row) == 2 for row in distinct)


def test_over_pairs_as_many_vectors_as_images_where_classes_are_alike_in_size():
    label = torch.arange(8).repeat_interleave(4)
    found = mixed_classes(torch.randn(32, 5), label, share=0.5, n=32)
    assert torch.bincount(found.code).tolist() == [4] * 8
    assert pytest.approx(32) == len(found.embedding)
