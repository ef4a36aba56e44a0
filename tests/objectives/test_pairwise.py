"""The batch against itself: an image is never its own pair, mining sees no gradient."""

import torch

from kinfold.core.similarity import cosine
from kinfold.losses import contrastive
from kinfold.objectives import Pairwise
from kinfold.objectives.pairwise import pairwise_loss
from kinfold.records import Embedded


def test_an_image_is_never_its_own_pair_nor_its_other_views():
    seen = []

    def loss(sim, pairs):
        seen.append(pairs)
        return sim.sum() * 0

    label, item = torch.tensor([0, 0, 1, 0]), torch.tensor([5, 6, 7, 5])
    pairwise_loss(loss, torch.randn(4, 3), label, item)
    expected = [[i != j and item[i] != item[j] and label[i] == label[j] for j in range(4)] for i in range(4)]
    assert seen[0].positive.tolist() == expected
    assert not (seen[0].positive & seen[0].negative).any()
    assert not seen[0].negative.diagonal().any()


def test_duplicates_with_other_items_stay_pairs():
    x = torch.ones(2, 3)
    value = pairwise_loss(contrastive, x, torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert value > 0, "two equal images of different classes are a negative pair"


def test_the_miner_chooses_from_detached_similarities():
    seen = []

    def miner(sim, pairs):
        seen.append(sim)
        return pairs

    x = torch.randn(4, 3, requires_grad=True)
    given = Embedded(x, x, torch.tensor([0, 0, 1, 1]), torch.arange(4), torch.zeros(4, dtype=torch.long))
    objective = Pairwise(contrastive, miner=miner)
    objective(given).total.backward()
    assert not seen[0].requires_grad
    torch.testing.assert_close(seen[0], cosine(x, x).detach())
