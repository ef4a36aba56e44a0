import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.errors import ShapeError
from kinfold.evaluation.exclusion import SameItem, check_mask

ids = st.lists(st.sampled_from([0, 1, 2, 10**9, 2**62]), min_size=1, max_size=8)


@given(ids, ids, st.integers(0, 7), st.randoms(use_true_random=False))
def test_sorted_items_find_the_same_pairs_as_the_mask(query, gallery, first, random):
    query_order, gallery_order = list(range(len(query))), list(range(len(gallery)))
    random.shuffle(query_order)
    random.shuffle(gallery_order)
    same = SameItem(torch.tensor(query), torch.tensor(gallery))
    items = same.in_order(torch.tensor(query_order), torch.tensor(gallery_order))
    mask = same(torch.tensor(query_order), torch.tensor(gallery_order))
    assert items.n_excluded.tolist() == mask.sum(dim=1).tolist()
    row, column = items.pairs(first, len(query)) if first < len(query) else (torch.tensor([]), torch.tensor([]))
    wanted = {(i - first, j) for i, j in mask.nonzero().tolist() if i >= first}
    assert set(zip(row.tolist(), column.tolist(), strict=True)) == wanted
    assert len(row) == len(wanted)
    assert column.tolist() == sorted(column.tolist())


@pytest.mark.parametrize("mask", [torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.bool)])
def test_an_answer_that_is_no_mask_of_the_pairs_is_refused(mask):
    with pytest.raises(ShapeError, match="2 query rows and 3 gallery rows"):
        check_mask(mask, 2, 3)
