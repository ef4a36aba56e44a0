"""The hook `health`: plain finite-or-nan numbers from a detached batch, and nothing is changed by asking."""

import math
from functools import partial

import pytest
import torch

from kinfold.core.mining import distance_weighted, multi_similarity_mining, semi_hard
from kinfold.losses import LOSSES, contrastive, multi_similarity, normalized_softmax, triplet
from kinfold.objectives import OBJECTIVES, Pairwise, Proxies
from kinfold.objectives.base import HEALTH_ROWS, embedding_health
from kinfold.objectives.pairwise import active_pairs, pairwise_loss
from kinfold.objectives.proxy import proxy_similarities
from kinfold.records import Embedded
from tests.contracts.test_objectives import MAKE


def embedded(label, *, dim=6, item=None, requires_grad=False, seed=0) -> Embedded:
    x = torch.randn(len(label), dim, generator=torch.Generator().manual_seed(seed)).requires_grad_(requires_grad)
    item = torch.arange(len(label)) if item is None else item
    return Embedded(x, x, torch.as_tensor(label), item, torch.zeros(len(label), dtype=torch.long))


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_asking_changes_nothing_and_answers_in_plain_numbers(name):
    objective, batch = MAKE[name](), embedded([0, 1, 2, 3] * 3)
    before = {key: value.clone() for key, value in objective.state_dict().items()}
    generator = torch.get_rng_state()
    with torch.no_grad():
        found = objective.health(batch)
    assert found
    assert all(type(value) is float and math.isfinite(value) for value in found.values())
    assert found == objective.health(batch), "with or without gradients"
    assert torch.equal(generator, torch.get_rng_state())
    assert all(torch.equal(value, objective.state_dict()[key]) for key, value in before.items())
    assert all(p.grad is None for p in objective.parameters())


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@pytest.mark.parametrize("label", [[0], [0, 0, 0], [0, 1, 2, 3]], ids=["one image", "one class", "no positives"])
def test_no_batch_makes_it_raise(name, label):
    assert all(isinstance(value, float) for value in MAKE[name]().health(embedded(label)).values())


def shares_by_differences(loss, batch, miner=None):
    """Return the share of pairs whose own similarity moves the loss when it is nudged."""
    x = torch.nn.functional.normalize(batch.embedding.double())
    start, n = x @ x.T, len(x)

    def value(sim):
        return float(pairwise_loss(loss, batch.embedding, batch.label, batch.item, similarity=lambda *_: sim, miner=miner))

    shares = []
    for alike in (True, False):
        moved = []
        for i in range(n):
            for j in range(n):
                if batch.item[i] != batch.item[j] and bool(batch.label[i] == batch.label[j]) == alike:
                    nudge = torch.zeros_like(start)
                    nudge[i, j] = 1e-5
                    moved.append(abs(value(start + nudge) - value(start - nudge)) > 1e-9)
        shares.append(sum(moved) / len(moved))
    return shares


@pytest.mark.parametrize(
    ("loss", "miner"),
    [
        (partial(contrastive, positive_threshold=0.3, negative_threshold=0.1), None),
        (partial(triplet, margin=0.2), None),
        (partial(triplet, margin=0.2, pick=partial(semi_hard, margin=0.2)), None),
        (partial(multi_similarity, beta=4.0), multi_similarity_mining),
    ],
    ids=["contrastive", "all triplets", "semi-hard", "mined multi-similarity"],
)
def test_active_pairs_are_those_that_move_the_loss(loss, miner):
    batch = embedded([0, 0, 0, 1, 1, 1, 2, 2], dim=3)
    shares = active_pairs(loss, batch.embedding.double(), batch.label, batch.item, miner=miner)
    assert shares == pytest.approx(shares_by_differences(loss, batch, miner))
    assert min(shares) > 0, "the case says something"


@pytest.mark.parametrize("constant", [lambda sim, pairs: torch.tensor(0.0), lambda sim, pairs: sim.detach().sum()])
def test_a_loss_that_depends_on_no_similarity_has_no_active_pair(constant):
    batch = embedded([0, 0, 1, 1])
    assert active_pairs(constant, batch.embedding, batch.label, batch.item) == (0.0, 0.0)


def test_views_of_one_image_are_no_pair():
    item = torch.tensor([0, 0, 1, 2])
    batch = embedded([0, 0, 0, 1], item=item)
    seen = []

    def loss(sim, pairs):
        seen.append(pairs)
        return (sim * pairs.positive).sum()

    assert active_pairs(loss, batch.embedding, batch.label, item) == (1.0, 0.0)
    assert int(seen[0].positive.sum()) == 4


def test_a_similarity_with_parameters_gets_no_gradient():
    layer = torch.nn.Linear(6, 6)
    objective = Pairwise(contrastive, similarity=lambda x, y: layer(x) @ layer(y).T)
    objective.health(embedded([0, 0, 1, 1], requires_grad=True))
    assert layer.weight.grad is None


def test_a_pick_that_draws_finds_its_generators_as_they_were():
    own = torch.Generator().manual_seed(3)
    batch = embedded([0, 0, 1, 1, 2, 2])
    for generator in (None, own):
        pick = partial(distance_weighted, dim=6, generator=generator)
        objective = Pairwise(partial(triplet, pick=partial(pick)))
        before = torch.get_rng_state(), own.get_state()
        objective.health(batch)
        assert torch.equal(before[0], torch.get_rng_state())
        assert torch.equal(before[1], own.get_state())
        objective(batch)
        drawn = own.get_state() if generator is own else torch.get_rng_state()
        assert not torch.equal(before[1 if generator is own else 0], drawn), "training itself draws"


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_has_its_shares(loss):
    found = Pairwise(LOSSES[loss]).health(embedded([0, 0, 0, 1, 1, 1]))
    assert all(0 <= value <= 1 for value in found.values())


def test_proxy_similarities_equal_their_loops():
    batch, proxies = embedded([2, 0, 1, 1]), torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    proxies[2] = batch.embedding[0]  # an image whose own proxy is the nearest
    cos = [[float(torch.cosine_similarity(x, p, dim=0)) for p in proxies] for x in batch.embedding]
    own = [row[label] for row, label in zip(cos, batch.label.tolist(), strict=True)]
    other = [max(s for c, s in enumerate(row) if c != label) for row, label in zip(cos, batch.label.tolist(), strict=True)]
    found = proxy_similarities(batch.embedding, batch.label, proxies)
    assert found == pytest.approx((sum(own) / 4, sum(other) / 4), rel=1e-5)
    objective = Proxies(normalized_softmax, 4, 6)
    torch.nn.init.normal_(objective.proxies)
    answered = objective.health(batch)
    assert tuple(answered.values()) == proxy_similarities(batch.embedding, batch.label, objective.proxies)
    assert tuple(answered) == ("own_proxy_similarity", "other_proxy_similarity")


def test_the_nearest_other_proxy_may_lie_on_the_far_side():
    x, proxies = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [-0.6, 0.8], [-1.0, 0.0]])
    assert proxy_similarities(x, torch.tensor([0]), proxies) == pytest.approx((1.0, -0.6))


def test_what_is_not_defined_on_a_batch_is_left_out():
    names = {"effective_rank", "uniformity", "alignment", "positive_similarity", "negative_similarity", "similarity_gap"}
    assert set(embedding_health(embedded([0, 0, 1, 1]))) == names
    assert set(embedding_health(embedded([0, 1, 2]))) == {"effective_rank", "uniformity", "negative_similarity"}
    assert embedding_health(embedded([0])) == {}


def test_a_huge_batch_is_judged_by_its_first_rows():
    label = torch.arange(HEALTH_ROWS + 50) // 4
    batch = embedded(label)
    first = Embedded(*(getattr(batch, name)[:HEALTH_ROWS] for name in ("embedding", "feature", "label", "item", "view")))
    assert embedding_health(batch) == embedding_health(first)
