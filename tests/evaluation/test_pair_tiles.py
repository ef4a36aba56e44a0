import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.evaluation import pair_tiles
from kinfold.evaluation.pair_tiles import labelled_pairs
from kinfold.evaluation.tiles import COLUMNS, ROWS
from tests.evaluation import pairs_oracle as oracle


def found(pairs, *, alike_only=False):
    """Return the sorted similarities of positive and of negative pairs, read off the tiles."""
    positive, negative = [], []
    for sim, mask in pairs.tiles(alike_only=alike_only):
        alike = torch.zeros_like(sim, dtype=torch.bool) if mask is None else mask
        shown = sim > -torch.inf
        positive += sim[alike & shown].tolist()
        negative += sim[~alike & shown].tolist()
    return sorted(positive), sorted(negative)


@given(st.integers(1, 8), st.sampled_from(["all", "overlapping", "apart"]), st.integers(0, 2**30))
@settings(max_examples=100, deadline=None)
def test_each_unordered_pair_of_two_items_is_met_once(n, flags, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-9, 9, (n, 3), generator=generator).float()
    label, item = (torch.randint(3, (n,), generator=generator).tolist() for _ in range(2))
    is_query = is_gallery = None
    if flags != "all":
        is_query = [True, *(torch.rand(n - 1, generator=generator) < 0.6).tolist()]
        is_gallery = [not q for q in is_query] if flags == "apart" else [True, *(torch.rand(n - 1) < 0.6).tolist()]
        if not any(is_gallery):
            return
    pairs = labelled_pairs(x, label, item=item, is_query=is_query, is_gallery=is_gallery, similarity="dot")
    expected = tuple(map(sorted, oracle.kinds((x @ x.T).tolist(), label, item, is_query, is_gallery)))
    assert found(pairs) == expected
    assert pairs.n_pairs == sum(map(len, expected))
    assert found(pairs, alike_only=True)[0] == expected[0]


@pytest.mark.parametrize("share", [1.0, 0.7])
def test_sets_of_many_tiles_lose_and_repeat_nothing(share):
    n = 2 * COLUMNS + ROWS + 5
    x, label = torch.randint(-9, 9, (n, 3)).float(), torch.randint(900, (n,))
    is_query, is_gallery = (None, None) if share == 1 else (torch.rand(n) < share, torch.rand(n) < share)
    pairs = labelled_pairs(x, label, is_query=is_query, is_gallery=is_gallery, similarity="dot")
    asks, answers = (torch.ones(n, dtype=torch.bool) if flags is None else flags for flags in (is_query, is_gallery))
    meets = (asks[:, None] & answers) | (answers[:, None] & asks)
    meets = meets.triu(1)
    alike = label[:, None] == label
    sim = x @ x.T
    positive, negative = (sim[meets & kind].sort().values for kind in (alike, ~alike))
    n_negative, total = 0, 0.0
    found_positive = []
    for tile, mask in pairs.tiles():
        shown = tile > -torch.inf
        if mask is not None:
            found_positive.append(tile[shown & mask])
            shown &= ~mask
        n_negative += int(shown.sum())
        total += float(tile[shown].double().sum())
    assert torch.equal(torch.cat(found_positive).sort().values, positive)
    assert (n_negative, total) == (len(negative), float(negative.double().sum()))
    assert pairs.n_pairs == len(positive) + len(negative)


def test_half_of_the_tiles_of_a_set_in_itself_are_never_computed(monkeypatch):
    computed = []
    tile = pair_tiles.Grid.blocks

    def counted(grid):
        for block in tile(grid):
            whole = block.tile
            block.tile = lambda i, whole=whole, block=block: computed.append((block.first, i)) or whole(i)
            yield block

    monkeypatch.setattr(pair_tiles.Grid, "blocks", counted)
    pairs = labelled_pairs(torch.randn(3 * COLUMNS, 2), torch.arange(3 * COLUMNS) // 4)
    n_blocks = 3 * COLUMNS // ROWS
    assert len(list(pairs.tiles())) == len(computed) == n_blocks * 3 * 2 // 3
    computed.clear()
    assert len(list(pairs.tiles(alike_only=True))) == len(computed) == n_blocks
