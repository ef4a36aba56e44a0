"""Embedding Expansion: inner points and the hardest of all copies, against brute force."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.core.expansion import expanded_similarities, inner_points, next_of_class
from kinfold.core.pairs import pairs_from_labels, without_same_item
from kinfold.core.reduce import normalise
from kinfold.core.similarity import cosine, negative_euclidean

LABELS = st.lists(st.integers(0, 3), min_size=1, max_size=10)


def drawn(n, seed=0):
    return torch.randn(n, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(LABELS, st.data())
def test_the_next_of_a_class_is_the_first_that_follows_around(labels, data):
    items = data.draw(st.lists(st.integers(0, 5), min_size=len(labels), max_size=len(labels)))
    n = len(labels)
    for i, found in enumerate(next_of_class(torch.tensor(labels), torch.tensor(items)).tolist()):
        after = [(i + k) % n for k in range(1, n)]
        fitting = [j for j in after if labels[j] == labels[i] and items[j] != items[i]]
        assert found == (fitting[0] if fitting else i)


def test_points_divide_the_way_into_equal_parts():
    x, label = normalise(drawn(5)), torch.tensor([0, 1, 0, 2, 0])
    found = inner_points(x, label, torch.arange(5), n_points=2)
    assert found.row.tolist() == [0, 0, 2, 2, 4, 4]
    for place, (i, j, k) in enumerate([(0, 2, 1), (0, 2, 2), (2, 4, 1), (2, 4, 2), (4, 0, 1), (4, 0, 2)]):
        expected = normalise(((k * x[i] + (3 - k) * x[j]) / 3)[None])[0]
        torch.testing.assert_close(found.embedding[place], expected)


def brute_force(x, labels, items, per, n_points, similarity):
    """The matrix by its definition: every copy of a row (or class) against every copy of the other."""
    n = len(labels)
    copies = [[x[i]] for i in range(n)]
    for i in range(n):
        fitting = [j for j in [(i + k) % n for k in range(1, n)] if labels[j] == labels[i] and items[j] != items[i]]
        for k in range(1, n_points + 1 if fitting else 0):
            j = fitting[0]
            length = k / (n_points + 1) * x[i].norm() + (n_points + 1 - k) / (n_points + 1) * x[j].norm()
            mixed = k * x[i] / x[i].norm() + (n_points + 1 - k) * x[j] / x[j].norm()
            copies[i].append(length * mixed / mixed.norm())
    found = similarity(x, x).clone()
    for i in range(n):
        for j in range(n):
            if labels[i] == labels[j] or items[i] == items[j]:
                continue
            ours = [c for a in range(n) if labels[a] == labels[i] for c in copies[a]] if per == "class" else copies[i]
            theirs = [c for b in range(n) if labels[b] == labels[j] for c in copies[b]] if per == "class" else copies[j]
            found[i, j] = max(float(similarity(a[None], b[None])) for a in ours for b in theirs)
    return found


@settings(max_examples=25, deadline=None)
@given(LABELS, st.sampled_from(["class", "image"]), st.integers(0, 2), st.sampled_from([cosine, negative_euclidean]))
def test_negatives_are_the_hardest_of_all_copies_and_positives_stay(labels, per, n_points, similarity):
    x, label, item = drawn(len(labels)), torch.tensor(labels), torch.arange(len(labels))
    pairs = without_same_item(pairs_from_labels(label, label), item, item)
    found = expanded_similarities(x, label, item, pairs, similarity=similarity, n_points=n_points, per=per)
    torch.testing.assert_close(found, brute_force(x, labels, item.tolist(), per, n_points, similarity), rtol=1e-7, atol=1e-7)


def test_without_points_images_are_what_they_are():
    x, label = drawn(6).float(), torch.tensor([0, 0, 1, 1, 2, 2])
    pairs = pairs_from_labels(label, label)
    found = expanded_similarities(x, label, torch.arange(6), pairs, similarity=cosine, n_points=0, per="image")
    assert torch.equal(found, cosine(x, x))


@pytest.mark.parametrize("per", ["class", "image"])
def test_gradients_reach_the_parents_of_the_point_chosen(per):
    x = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.3]], dtype=torch.float64, requires_grad=True)
    label, item = torch.tensor([0, 0, 1]), torch.arange(3)
    pairs = pairs_from_labels(label, label)
    how = {"similarity": cosine, "n_points": 1, "per": per}
    expanded_similarities(x, label, item, pairs, **how)[0, 2].backward()
    assert x.grad.any(dim=1).all()  # the middle of rows 0 and 1 is nearest to row 2
    y = drawn(6).requires_grad_()
    label = torch.tensor([0, 0, 0, 1, 1, 1])
    pairs = pairs_from_labels(label, label)
    function = partial(expanded_similarities, label=label, item=torch.arange(6), pairs=pairs, similarity=cosine, per=per)
    assert torch.autograd.gradcheck(function, y)
