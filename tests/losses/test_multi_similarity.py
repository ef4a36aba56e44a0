import torch
from torch.autograd import gradcheck

from kinfold.core.mining import multi_similarity_mining
from kinfold.core.pairs import pairs_from_labels, without_self
from kinfold.core.similarity import cosine
from kinfold.losses import LOSSES

LABEL = torch.arange(8) % 4
PAIRS = without_self(pairs_from_labels(LABEL, LABEL))


def test_the_mined_loss_has_the_gradient_of_the_loss_on_the_frozen_pairs():
    x = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    frozen = multi_similarity_mining(cosine(x, x), PAIRS, epsilon=0.3)
    assert 0 < frozen.positive.sum() < PAIRS.positive.sum()
    assert gradcheck(lambda x: LOSSES["multi_similarity"](cosine(x, x), frozen), (x,))
    sim = cosine(x, x)
    mined = LOSSES["multi_similarity"](sim, multi_similarity_mining(sim, PAIRS, epsilon=0.3))
    (ours,) = torch.autograd.grad(mined, x)
    (expected,) = torch.autograd.grad(LOSSES["multi_similarity"](cosine(x, x), frozen), x)
    assert torch.equal(ours, expected)


def test_a_row_without_negatives_keeps_its_positive_term():
    """An anchor's own views stand in a matrix of their own, without negatives."""
    sim, nothing = torch.full((2, 1), 0.5), torch.zeros(2, 1, dtype=torch.bool)
    views = pairs_from_labels(torch.arange(2), torch.arange(1))
    views = type(views)(positive=~nothing, negative=nothing)
    torch.testing.assert_close(LOSSES["multi_similarity"](sim, views), torch.tensor(2.0).log() / 2)
