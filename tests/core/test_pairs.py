import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.core.pairs import append_columns, pairs_from_labels, reweight, shift, shifted, without_same_item, without_self
from kinfold.errors import ShapeError
from kinfold.records import Pairs

numbers = st.sampled_from([0, 1, 2, 2**24, 2**24 + 1, 2**53, 2**53 + 1])
labels = st.lists(numbers, max_size=8)


@given(rows=labels, columns=labels)
def test_equal_labels_are_positive_and_all_others_negative_at_any_size_of_the_numbers(rows, columns):
    pairs = pairs_from_labels(torch.tensor(rows, dtype=torch.long), torch.tensor(columns, dtype=torch.long))
    assert pairs.positive.shape == pairs.negative.shape == (len(rows), len(columns))
    assert pairs.positive.tolist() == [[a == b for b in columns] for a in rows]
    assert pairs.negative.tolist() == [[a != b for b in columns] for a in rows]
    assert pairs.margin == 0.0
    assert pairs.weight is None


@given(label=labels)
def test_without_self_ignores_the_diagonal_and_nothing_else(label):
    label = torch.tensor(label, dtype=torch.long)
    pairs, kept = pairs_from_labels(label, label), without_self(pairs_from_labels(label, label))
    other = ~torch.eye(len(label), dtype=torch.bool)
    assert not kept.positive.diagonal().any()
    assert torch.equal(kept.positive[other], pairs.positive[other])
    assert torch.equal(kept.negative, pairs.negative)


def test_without_self_needs_a_square():
    with pytest.raises(ShapeError, match=r"pairs are \(2, 3\), but only a square matrix has a diagonal"):
        without_self(pairs_from_labels(torch.arange(2), torch.arange(3)))


@given(rows=labels, columns=labels)
def test_without_same_item_ignores_an_item_with_itself_wherever_it_stands(rows, columns):
    one_class = pairs_from_labels(torch.zeros(len(rows), dtype=torch.long), torch.zeros(len(columns), dtype=torch.long))
    kept = without_same_item(one_class, torch.tensor(rows, dtype=torch.long), torch.tensor(columns, dtype=torch.long))
    assert kept.positive.tolist() == [[a != b for b in columns] for a in rows]


def test_without_same_item_clears_both_masks():
    noisy = pairs_from_labels(torch.tensor([0]), torch.tensor([1, 0]))
    kept = without_same_item(noisy, torch.tensor([5]), torch.tensor([5, 5]))
    assert not kept.positive.any()
    assert not kept.negative.any()


def test_without_same_item_needs_one_item_per_row_and_column():
    pairs = pairs_from_labels(torch.arange(2), torch.arange(3))
    with pytest.raises(ShapeError, match=r"pairs are \(2, 3\), but there are 3 row items and 2 column items"):
        without_same_item(pairs, torch.arange(3), torch.arange(2))


def test_shifts_add_up_and_weights_multiply_without_touching_the_argument():
    pairs = pairs_from_labels(torch.arange(2), torch.arange(2))
    margin, weight = torch.tensor([[0.1, 0.2], [0.3, 0.4]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    changed = reweight(reweight(shift(shift(pairs, margin), 0.5), weight), weight)
    torch.testing.assert_close(changed.margin, margin + 0.5)
    torch.testing.assert_close(changed.weight, weight**2)
    assert pairs.margin == 0.0
    assert pairs.weight is None


def test_shifted_subtracts_the_margin_in_at_least_float32():
    pairs = shift(pairs_from_labels(torch.arange(1), torch.arange(2)), 0.25)
    s = shifted(torch.tensor([[1.0, 0.5]], dtype=torch.float16), pairs)
    assert s.dtype == torch.float32
    assert s.tolist() == [[0.75, 0.25]]


@pytest.mark.parametrize("left_margin", [0.0, 0.1, torch.tensor([[0.3], [0.4]])])
@pytest.mark.parametrize("right_margin", [0.0, torch.tensor([[0.5, 0.6], [0.7, 0.8]])])
@pytest.mark.parametrize("left_weight", [None, torch.tensor([[2.0], [3.0]])])
@pytest.mark.parametrize("right_weight", [None, torch.tensor([[4.0, 5.0], [6.0, 7.0]])])
def test_appended_columns_keep_the_margins_and_weights_of_their_side(left_margin, right_margin, left_weight, right_weight):
    left = pairs_from_labels(torch.tensor([0, 1]), torch.tensor([0]))
    right = pairs_from_labels(torch.tensor([0, 1]), torch.tensor([1, 2]))
    left = Pairs(left.positive, left.negative, left_margin, left_weight)
    right = Pairs(right.positive, right.negative, right_margin, right_weight)
    joined, full = append_columns(left, right), torch.ones(2, 3)
    assert joined.positive.tolist() == [[True, False, False], [False, True, False]]
    assert joined.negative.tolist() == [[False, True, True], [True, False, True]]
    for side, columns in ((left, slice(0, 1)), (right, slice(1, 3))):
        size = side.positive.shape
        assert torch.equal((full * joined.margin)[:, columns], torch.ones(size) * side.margin)
        weight = torch.ones(2, 3) if joined.weight is None else joined.weight
        assert torch.equal(weight[:, columns], torch.ones(size) if side.weight is None else side.weight)


def test_appending_columns_of_other_rows_is_refused():
    with pytest.raises(ShapeError, match="2 and 3 rows"):
        append_columns(pairs_from_labels(torch.arange(2), torch.arange(2)), pairs_from_labels(torch.arange(3), torch.arange(2)))
