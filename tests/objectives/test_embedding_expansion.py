"""Embedding Expansion before any pair loss: hardened negatives reach the loss and the miner, and hosts with proxies are refused."""

from functools import partial

import pytest
import torch

from kinfold.core.expansion import expanded_similarities
from kinfold.core.mining import batch_hard, multi_similarity_mining
from kinfold.core.pairs import pairs_from_labels, without_same_item
from kinfold.core.similarity import cosine
from kinfold.errors import ConfigError
from kinfold.losses import LOSSES, lifted_structure, multi_similarity, triplet
from kinfold.objectives import EmbeddingExpansion, NovelClasses, Pairwise, Proxies
from kinfold.records import Embedded
from tests import oracles


def batch(n=12, n_classes=4):
    x = torch.randn(n, 5, generator=torch.Generator().manual_seed(0)).requires_grad_()
    return Embedded(x, x, torch.arange(n) % n_classes, torch.arange(n), torch.zeros(n, dtype=torch.long))


def lists(given, per="class"):
    pairs = without_same_item(pairs_from_labels(given.label, given.label), given.item, given.item)
    sim = expanded_similarities(given.embedding.detach(), given.label, given.item, pairs, similarity=cosine, per=per)
    n = len(given.label)
    zero, one = ([[value] * n for _ in range(n)] for value in (0.0, 1.0))
    return sim.tolist(), pairs.positive.tolist(), pairs.negative.tolist(), zero, one


@pytest.mark.parametrize("per", ["class", "image"])
def test_the_loss_is_the_pair_loss_of_hardened_similarities(per):
    given = batch()
    for loss, oracle in ((multi_similarity, oracles.multi_similarity), (lifted_structure, oracles.lifted_structure)):
        found = EmbeddingExpansion(Pairwise(loss), per=per)(given).total
        assert float(found.detach()) == pytest.approx(oracle(*lists(given, per)), rel=1e-5)


def test_batch_hard_triplets_take_the_hardest_positive_and_the_hardest_of_all_points():
    given = batch()
    sim, positive, negative, _, _ = lists(given)
    terms = []
    for i in range(len(sim)):
        hardest_positive = min(sim[i][j] for j in range(len(sim)) if positive[i][j])
        hardest_negative = max(sim[i][j] for j in range(len(sim)) if negative[i][j])
        terms.append(max(0.0, hardest_negative - hardest_positive + 0.2))
    found = EmbeddingExpansion(Pairwise(partial(triplet, margin=0.2, pick=batch_hard)))(given).total
    assert float(found.detach()) == pytest.approx(sum(terms) / len(terms), rel=1e-5)


def test_negatives_are_never_easier_than_without():
    given = batch()
    for loss in (multi_similarity, lifted_structure):
        base, hardened = Pairwise(loss)(given).total, EmbeddingExpansion(Pairwise(loss))(given).total
        assert float(hardened.detach()) > float(base.detach())


def test_the_miner_sees_hardened_negatives():
    seen = []

    def miner(sim, pairs):
        seen.append(sim)
        return multi_similarity_mining(sim, pairs)

    EmbeddingExpansion(Pairwise(multi_similarity, miner=miner))(batch())
    torch.testing.assert_close(seen[0], torch.tensor(lists(batch())[0]))


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_without_points_an_image_is_the_base_bit_for_bit(loss):
    base = Pairwise(LOSSES[loss])
    assert torch.equal(EmbeddingExpansion(base, n_points=0, per="image")(batch()).total, base(batch()).total)


@pytest.mark.parametrize("n_classes", [1, 6])
def test_batches_without_negatives_or_positives_stay_finite(n_classes):
    given = batch(6, n_classes)
    EmbeddingExpansion(Pairwise(multi_similarity))(given).total.backward()
    assert torch.isfinite(given.embedding.grad).all()


def test_it_is_a_host_of_novel_classes():
    objective = NovelClasses(EmbeddingExpansion(Pairwise(multi_similarity)), pretraining_epochs=0, n_classes=4, dim=5)
    for phase in objective.phases:
        objective(batch(), phase).total.backward()


def test_hosts_with_proxies_and_unknown_settings_are_refused():
    with pytest.raises(ConfigError, match="Proxies compares with proxies; Embedding Expansion goes over pairs"):
        EmbeddingExpansion(Proxies(multi_similarity, 4, 5))
    with pytest.raises(ConfigError, match="n_points = -1"):
        EmbeddingExpansion(Pairwise(triplet), n_points=-1)
    with pytest.raises(ConfigError, match="per = 'pair'"):
        EmbeddingExpansion(Pairwise(triplet), per="pair")
