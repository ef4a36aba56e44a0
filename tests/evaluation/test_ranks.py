import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.errors import ConfigError, ShapeError
from kinfold.evaluation import rank_rows as engine
from kinfold.evaluation.exclusion import SameItem
from kinfold.evaluation.metric_names import metrics_of
from kinfold.evaluation.ranks import ranks
from kinfold.evaluation.search import Depth, search_of


def by_loop(sim, relevant, allowed):
    """Count above, tied, relevant above and relevant tied of every relevant item, most alike first (exact ties)."""
    rows = []
    for i, row in enumerate(sim):
        candidates = [(s, relevant[i][j]) for j, s in enumerate(row) if allowed[i][j]]
        for s in sorted((s for s, r in candidates if r), reverse=True):
            rows.append(
                (
                    i,
                    sum(t > s for t, _ in candidates),
                    sum(t == s for t, _ in candidates),
                    sum(t > s for t, r in candidates if r),
                    sum(t == s for t, r in candidates if r),
                )
            )
    return rows


def entries(found):
    return list(
        zip(*(x.tolist() for x in (found.query, found.above, found.tied, found.relevant_above, found.relevant_tied)), strict=True)
    )


whole_numbers = st.integers(0, 2**30)


@given(st.integers(1, 12), st.integers(1, 40), st.integers(1, 5), whole_numbers)
@settings(max_examples=60, deadline=None)
def test_ranks_equal_a_plain_count(n, m, n_classes, seed):
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randint(-2, 3, (rows, 2), generator=generator).float() for rows in (n, m))
    label, other = (torch.randint(n_classes, (rows,), generator=generator) for rows in (n, m))
    item, other_item = (torch.randint(20, (rows,), generator=generator) for rows in (n, m))
    exclude = SameItem(item, other_item)
    relevant, allowed = label[:, None] == other, item[:, None] != other_item
    wanted = by_loop((x @ y.T).tolist(), relevant.tolist(), allowed.tolist())
    for rule in (exclude, exclude.__call__):
        found = ranks(x, y, label, other, similarity="dot", exclude=rule)
        assert entries(found) == wanted
        assert found.n_relevant.tolist() == (relevant & allowed).sum(dim=1).tolist()
        assert found.n_candidates.tolist() == allowed.sum(dim=1).tolist()


@pytest.mark.parametrize("similarity", ["cosine", "dot", "negative_euclidean", lambda x, y: -torch.cdist(x, y, p=1)])
def test_random_ranks_equal_a_plain_count_over_several_tiles(similarity):
    x, y = torch.randn(300, 4).double(), torch.randn(4500, 4).double()
    label, other = torch.randint(600, (300,)), torch.randint(600, (4500,))
    if similarity == "cosine":
        sim = torch.nn.functional.normalize(x) @ torch.nn.functional.normalize(y).T
    else:
        sim = x @ y.T if similarity == "dot" else -torch.cdist(x, y, p=2 if similarity == "negative_euclidean" else 1)
    found = ranks(x, y, label, other, similarity=similarity)
    for entry in range(0, len(found.query), 7):
        i = int(found.query[entry])
        own = sim[i][other == label[i]].sort(descending=True).values
        first = int((found.query < i).sum())
        assert int(found.above[entry]) == int((sim[i] > own[entry - first]).sum())
    assert found.tied.tolist() == [1] * len(found.tied)


def one_search(x, label, memory=10**8):
    item = SameItem(torch.arange(len(x)), torch.arange(len(x)))
    return search_of((x, x), (label, label), similarity="dot", exclude=item, memory=memory)


@pytest.mark.parametrize("coarse", [False, True], ids=["without ties", "with ties"])
def test_the_short_list_gives_the_values_of_the_full_count(coarse, monkeypatch):
    x = torch.randn(3000, 6).double()
    x = x.mul(1.5).round() if coarse else x
    label = torch.cat([torch.arange(20).repeat_interleave(30), torch.arange(20, 2420)])
    names = ["precision_at_5", "precision_at_60", "r_precision", "map_at_r", "recall_at_700"]
    lists = []
    used = engine.count_near_the_top
    monkeypatch.setattr(engine, "count_near_the_top", lambda *a: lists.append(used(*a)) or lists[-1])
    for metric in metrics_of(names, 1):
        values = [
            torch.cat([metric.of(part) for part in one_search(x, label, memory).ranks(depth)])
            for depth in (Depth("all"), Depth("first", 60))
            for memory in (10**8, 10**6)
        ]
        for value in values[1:]:
            assert torch.equal(value.nan_to_num(-1), values[0].nan_to_num(-1))
    assert lists
    assert any(found is None for found in lists) is coarse


def test_items_past_the_limit_of_a_short_list_are_reported_past_it_and_in_order():
    x = torch.randn(1200, 6).double()
    label = torch.arange(1200) // 30
    for full, first in zip(*(list(one_search(x, label).ranks(depth)) for depth in (Depth("all"), Depth("first"))), strict=True):
        near = full.above < 29
        assert torch.equal(full.above[near], first.above[near])
        assert torch.equal(full.tied[near], first.tied[near])
        assert (first.above[~near] >= 29).all()
        assert (first.tied >= first.relevant_tied).all()
        same_query = first.query[1:] == first.query[:-1]
        assert (first.above.diff()[same_query] > 0).all()


@pytest.mark.parametrize("coarse", [False, True], ids=["without ties", "with ties"])
@pytest.mark.parametrize("k", [1, 9])
def test_the_top_alone_gives_the_precision_of_the_full_count(coarse, k):
    x = torch.randn(260, 6).double()
    x = x.mul(1.5).round() if coarse else x
    label = torch.cat([torch.arange(2).repeat_interleave(80), torch.arange(2, 102)])
    for metric in metrics_of([f"precision_at_{k}", "recall_at_1"], 1):
        full, top, top_in_parts = (
            torch.cat([metric.of(part) for part in one_search(x, label, memory).ranks(depth)])
            for depth, memory in ((Depth("all"), 10**8), (Depth("top", k), 10**8), (Depth("top", k), 10**6))
        )
        assert torch.equal(full.nan_to_num(-1), top.nan_to_num(-1))
        assert torch.equal(top.nan_to_num(-1), top_in_parts.nan_to_num(-1))
    entries_of = [sum(len(part.query) for part in one_search(x, label).ranks(depth)) for depth in (Depth("all"), Depth("top", k))]
    assert entries_of[1] < entries_of[0] / 2, "the rest is not ranked"


def test_an_item_within_two_tie_groups_belongs_to_the_first():
    eps = torch.finfo(torch.float32).eps
    gallery = torch.tensor([[1.0], [1 - 3 * eps], [1 - 5 * eps], [0.5]])
    found = ranks(torch.ones(1, 1), gallery, ["a"], ["a", "b", "a", "b"], similarity="dot")
    assert entries(found) == [(0, 0, 2, 0, 1), (0, 2, 1, 1, 1)]


def test_the_best_relevant_item_has_the_same_rank_at_every_depth():
    x, label = torch.randn(500, 3).mul(2).round(), torch.arange(500) % 40
    full, first, best = (
        [part.best() for part in one_search(x, label).ranks(depth)] for depth in (Depth("all"), Depth("first"), Depth("best"))
    )
    for a, b, c in zip(full, first, best, strict=True):
        assert entries(a) == entries(b) == entries(c)


def test_one_class_of_everything_is_ranked_within_a_small_budget():
    x, label = torch.randn(700, 4), torch.zeros(700, dtype=torch.long)
    for memory in (10**6, 10**8):
        parts = list(one_search(x, label, memory).ranks(Depth("all")))
        assert (len(parts) == 3) is (memory == 10**8)
        for part in parts:
            assert (part.above + part.tied - part.relevant_above - part.relevant_tied == 0).all()
            assert (part.n_relevant == 699).all()


def test_sides_and_settings_that_do_not_fit_are_refused():
    x = torch.randn(3, 2)
    with pytest.raises(ShapeError, match="3 rows but 2 labels"):
        ranks(x, x, [1, 2], [1, 2, 3])
    with pytest.raises(ShapeError, match="dimensions"):
        ranks(x, torch.randn(3, 4), [1, 2, 3], [1, 2, 3])
    with pytest.raises(ConfigError):
        ranks(x, x, [1, 2, 3], [1, 2, 3], similarity="dott")
