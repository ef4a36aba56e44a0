from collections import Counter
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kinfold.core.mining import (
    MINERS,
    PICKS,
    all_triplets,
    batch_hard,
    distance_weighted,
    easy_positive_mining,
    multi_similarity_mining,
    semi_hard,
)
from kinfold.core.pairs import pairs_from_labels, reweight, without_self
from kinfold.core.similarity import cosine
from kinfold.records import Pairs
from tests import oracles

TRIPLET_PICKS = {
    "all_triplets": all_triplets,
    "batch_hard": batch_hard,
    "semi_hard": semi_hard,
    "closest": partial(semi_hard, select="closest"),
    "distance_weighted": partial(distance_weighted, dim=8),
}


@st.composite
def problems(draw):
    """Any matrix with few different values (many ties), every entry positive, negative or ignored."""
    shape = (draw(st.integers(0, 5)), draw(st.integers(0, 6)))
    sim = draw(arrays("float64", shape, elements=st.sampled_from([-1.0, -0.3, 0.2, 0.25, 0.3, 0.5, 0.55, 1.0])))
    kind = draw(arrays("int64", shape, elements=st.integers(0, 2)))
    return torch.from_numpy(sim), Pairs(torch.from_numpy(kind == 1), torch.from_numpy(kind == 2))


def indices(triplets) -> list[tuple[int, int, int]]:
    return [tuple(row) for row in torch.stack([triplets.anchor, triplets.positive, triplets.negative], dim=1).tolist()]


def expected(sim, pairs, picks):
    zeros = [[0.0] * sim.shape[1] for _ in sim]
    return oracles.triplets_of(sim.tolist(), pairs.positive.tolist(), pairs.negative.tolist(), zeros, picks)


@given(problem=problems())
@pytest.mark.parametrize("name", ["all_triplets", "semi_hard"])
def test_picks_of_many_triplets_find_exactly_those_of_a_plain_loop(name, problem):
    assert Counter(indices(TRIPLET_PICKS[name](*problem))) == Counter(expected(*problem, name))


@given(problem=problems())
@pytest.mark.parametrize("name", ["batch_hard", "closest"])
def test_picks_of_one_triplet_are_as_hard_as_those_of_a_plain_loop_whatever_the_ties(name, problem):
    sim, pairs = problem

    def hardness(found):
        return sorted((a, sim[a, p].item(), sim[a, k].item()) for a, p, k in found)

    assert hardness(indices(TRIPLET_PICKS[name](sim, pairs))) == hardness(expected(sim, pairs, name))


@given(problem=problems())
@pytest.mark.parametrize("name", TRIPLET_PICKS)
def test_every_triplet_is_one_positive_and_one_negative_pair_of_its_anchor(name, problem):
    sim, pairs = problem
    found = TRIPLET_PICKS[name](sim, pairs)
    assert found.weight is None
    assert pairs.positive[found.anchor, found.positive].all()
    assert pairs.negative[found.anchor, found.negative].all()


@given(problem=problems())
@pytest.mark.parametrize("name", TRIPLET_PICKS)
def test_the_weight_of_a_triplet_is_the_product_of_its_two_pairs(name, problem):
    sim, pairs = problem
    weight = torch.rand(sim.shape)
    found = TRIPLET_PICKS[name](sim, reweight(pairs, weight))
    assert found.weight is not None
    assert torch.equal(found.weight, weight[found.anchor, found.positive] * weight[found.anchor, found.negative])


@given(problem=problems())
def test_distance_weighted_draws_one_negative_for_each_positive_pair_that_can_have_one(problem):
    sim, pairs = problem
    found = distance_weighted(sim, pairs, dim=16)
    drawn = list(zip(found.anchor.tolist(), found.positive.tolist(), strict=True))
    assert drawn == [tuple(pair) for pair in (pairs.positive & pairs.negative.any(1, keepdim=True)).nonzero().tolist()]


def one_anchor(negatives: list[float], n_positives: int = 1) -> tuple[torch.Tensor, Pairs]:
    sim = torch.tensor([[0.9] * n_positives + negatives])
    is_positive = torch.arange(sim.shape[1])[None] < n_positives
    return sim, Pairs(is_positive, ~is_positive)


def test_distance_weighted_draws_in_proportion_to_the_inverse_density():
    dist, dim, n = torch.tensor([0.7, 0.9, 1.1, 1.3]), 4, 40_000
    sim, pairs = one_anchor((1 - dist**2 / 2).tolist(), n_positives=n)
    found = distance_weighted(sim, pairs, dim=dim, generator=torch.Generator().manual_seed(0))
    share = torch.bincount(found.negative - n, minlength=4) / n
    inverse = 1 / (dist ** (dim - 2) * (1 - dist**2 / 4) ** ((dim - 3) / 2))
    torch.testing.assert_close(share, inverse / inverse.sum(), atol=0.01, rtol=0)


def test_distance_weighted_leaves_out_far_negatives_only_where_others_are_left():
    far, near = -0.2, 0.5  # at distances 1.55 and 1
    draw = partial(distance_weighted, dim=3, generator=torch.Generator().manual_seed(0))
    some_near = draw(*one_anchor([far, near, far], n_positives=300))
    assert set((some_near.negative - 300).tolist()) == {1}
    all_far = draw(*one_anchor([far, far - 0.5, -1.0], n_positives=3000))
    share = torch.bincount(all_far.negative - 3000, minlength=3) / 3000
    torch.testing.assert_close(share, torch.full((3,), 1 / 3), atol=0.04, rtol=0)
    without_bound = draw(*one_anchor([far, near, far], n_positives=300), farthest=None)
    assert set((without_bound.negative - 300).tolist()) == {0, 1, 2}


def test_distance_weighted_treats_all_near_negatives_as_equally_near():
    near = [1 - 0.2**2 / 2, 1 - 0.5**2 / 2]
    found = distance_weighted(*one_anchor(near, n_positives=4000), dim=64, generator=torch.Generator().manual_seed(0))
    assert (found.negative - 4000).double().mean().item() == pytest.approx(0.5, abs=0.04)


def test_distance_weighted_draws_the_antipode_whose_density_is_zero():
    found = distance_weighted(*one_anchor([0.5, -1.0], n_positives=50), dim=64, farthest=None)
    assert set(found.negative.tolist()) == {51}


@pytest.mark.parametrize("draw", [0.0, 1.0])
def test_distance_weighted_draws_a_possible_negative_also_at_both_ends_of_the_draw(draw, monkeypatch):
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.full(shape, draw))
    sim, pairs = torch.tensor([[0.5, 0.4, 0.3, 0.5]]), torch.tensor([[False, True, False, False]])
    possible = torch.tensor([[False, False, True, False]])
    assert distance_weighted(sim, Pairs(pairs, possible), dim=3).negative.tolist() == [2]


def test_distance_weighted_does_not_underflow_in_512_dimensions():
    sim = torch.tensor([[0.9, 0.875, 0.1, -0.9], [0.9, 0.1, 0.2, -0.9]])  # densities of the rows are 10^150 apart
    is_positive = torch.tensor([[True, False, False, False]] * 2)
    found = distance_weighted(sim, Pairs(is_positive, ~is_positive), dim=512)
    assert found.negative.tolist() == [1, 2]


def test_distance_weighted_draws_the_same_from_the_same_seed_and_leaves_the_global_state_alone():
    x, label = torch.randn(32, 8), torch.arange(32) % 8
    sim, pairs = cosine(x, x), without_self(pairs_from_labels(label, label))
    state = torch.get_rng_state()
    first, second, other = (distance_weighted(sim, pairs, dim=8, generator=torch.Generator().manual_seed(s)) for s in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first.negative, second.negative)
    assert not torch.equal(first.negative, other.negative)


def test_semi_hard_falls_back_to_the_least_alike_negative_where_none_is_less_alike_than_the_positive():
    sim = torch.tensor([[0.5, 0.9, 0.6, 0.7], [0.5, 0.45, 0.1, 0.7]])
    is_positive = torch.tensor([[True, False, False, False]] * 2)
    assert semi_hard(sim, Pairs(is_positive, ~is_positive), select="closest").negative.tolist() == [2, 1]


def test_semi_hard_window_has_the_width_of_its_margin():
    sim, pairs = torch.tensor([[0.5, 0.45, 0.35, 0.6]]), one_anchor([0.0, 0.0, 0.0])[1]
    assert semi_hard(sim, pairs, margin=0.1).negative.tolist() == [1]
    assert sorted(semi_hard(sim, pairs, margin=0.2).negative.tolist()) == [1, 2]
    assert semi_hard(sim, pairs, margin=0.01).negative.tolist() == []
    assert semi_hard(torch.tensor([[0.5, 0.25, 0.5, 0.375]]), pairs, margin=0.25).negative.tolist() == [3]


@given(problem=problems(), epsilon=st.sampled_from([0.0, 0.1, 0.3]))
def test_multi_similarity_mining_keeps_the_pairs_of_its_two_inequalities(problem, epsilon):
    sim, pairs = problem
    kept = multi_similarity_mining(sim, pairs, epsilon=epsilon)
    for i in range(len(sim)):
        near, far = (mask[i].nonzero().flatten().tolist() for mask in (pairs.positive, pairs.negative))
        hard_far = [k for k in far if near and sim[i, k] > min(sim[i, p] for p in near) - epsilon]
        hard_near = [p for p in near if far and sim[i, p] < max(sim[i, k] for k in far) + epsilon]
        if not hard_far or not hard_near:
            hard_far = hard_near = []
        assert kept.positive[i].nonzero().flatten().tolist() == hard_near
        assert kept.negative[i].nonzero().flatten().tolist() == hard_far


def test_multi_similarity_mining_leaves_out_a_pair_exactly_at_its_bound():
    kinds = torch.tensor([[True, True, False, False]])
    kept = multi_similarity_mining(torch.tensor([[0.25, 0.75, 0.75, 0.0]]), Pairs(kinds, ~kinds), epsilon=0.25)
    assert kept.positive.tolist() == [[True, True, False, False]]
    assert kept.negative.tolist() == [[False, False, True, False]]
    kept = multi_similarity_mining(torch.tensor([[0.25, 0.75, 0.5, 0.0]]), Pairs(kinds, ~kinds), epsilon=0.25)
    assert kept.positive.tolist() == [[True, False, False, False]]
    assert kept.negative.tolist() == [[False, False, True, False]]


@pytest.mark.parametrize(("near", "far"), [(0.11, 0.01), (0.18, 0.08), (0.35, 0.25)])
def test_multi_similarity_mining_clears_an_anchor_that_rounding_left_one_side(near, far):
    assert (far > near - 0.1) != (near < far + 0.1)
    kinds = torch.tensor([[True, False]])
    kept = multi_similarity_mining(torch.tensor([[near, far]], dtype=torch.float64), Pairs(kinds, ~kinds), epsilon=0.1)
    assert not kept.positive.any()
    assert not kept.negative.any()


def test_multi_similarity_mining_reads_the_similarities_without_margins_and_keeps_margins_and_weights():
    x, label = torch.randn(12, 3), torch.arange(12) % 4
    sim, pairs = cosine(x, x), without_self(pairs_from_labels(label, label))
    margin, weight = torch.randn(12, 12), torch.rand(12, 12)
    plain = multi_similarity_mining(sim, pairs)
    kept = multi_similarity_mining(sim, Pairs(pairs.positive, pairs.negative, margin, weight))
    assert torch.equal(kept.positive, plain.positive)
    assert torch.equal(kept.negative, plain.negative)
    assert kept.margin is margin
    assert kept.weight is weight


@given(problem=problems())
def test_easy_positive_mining_keeps_one_most_alike_positive_and_all_negatives(problem):
    sim, pairs = problem
    kept = easy_positive_mining(sim, pairs)
    assert torch.equal(kept.negative, pairs.negative)
    assert torch.equal(kept.positive.sum(dim=1), pairs.positive.any(dim=1).long())
    for i, j in kept.positive.nonzero().tolist():
        assert pairs.positive[i, j]
        assert sim[i, j] == sim[i][pairs.positive[i]].max()


@pytest.mark.parametrize("mine", [*TRIPLET_PICKS.values(), *MINERS.values()])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_columns_in_memory_order_change_nothing(mine, dtype):
    x, label = torch.randn(16, 8), torch.arange(16) % 4
    sim = cosine(x, x).to(dtype).T.requires_grad_()
    pairs = without_self(pairs_from_labels(label, label))
    generator = {"generator": torch.Generator().manual_seed(0)} if "distance_weighted" in str(mine) else {}
    twin = {"generator": torch.Generator().manual_seed(0)} if generator else {}
    half, full = mine(sim, pairs, **generator), mine(sim.detach().float().contiguous(), pairs, **twin)
    assert torch.equal(half.positive, full.positive)
    assert torch.equal(half.negative, full.negative)


def test_the_tables_name_every_way_to_mine():
    assert set(PICKS) == {function.__name__ for function in PICKS.values()}
    assert {f"{name}_mining" for name in MINERS} == {function.__name__ for function in MINERS.values()}
