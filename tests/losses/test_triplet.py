import torch

from kinfold.core.mining import all_triplets, batch_hard
from kinfold.core.pairs import pairs_from_labels, shift, without_self
from kinfold.core.similarity import cosine
from kinfold.losses import LOSSES

LABEL = torch.arange(8) % 4
PAIRS = without_self(pairs_from_labels(LABEL, LABEL))


def test_the_pick_sees_similarities_after_their_margins_and_without_a_graph():
    seen = []

    def spy(sim, pairs):
        seen.append(sim)
        return all_triplets(sim, pairs)

    sim = torch.rand(8, 8, requires_grad=True)
    margin = torch.rand(8, 8)
    LOSSES["triplet"](sim, shift(PAIRS, margin), pick=spy)
    torch.testing.assert_close(seen[0], (sim - margin).detach())
    assert not seen[0].requires_grad


def test_a_picked_loss_moves_only_the_pairs_of_its_triplets():
    x = torch.randn(8, 3)
    sim = cosine(x, x).requires_grad_()
    LOSSES["triplet"](sim, PAIRS, margin=2.0, pick=batch_hard).backward()
    assert sim.grad is not None
    assert ((sim.grad != 0).sum(dim=1) == 2).all()
    assert (sim.grad[PAIRS.positive] <= 0).all()
    assert (sim.grad[PAIRS.negative] >= 0).all()


def test_active_triplets_alone_are_averaged_on_request():
    sim = torch.tensor([[0.5, 0.9, 0.0, 0.0]])
    is_positive = torch.tensor([[True, False, False, False]])
    pairs = type(PAIRS)(is_positive, ~is_positive)
    assert abs(LOSSES["triplet"](sim, pairs, margin=0.2).item() - 0.2) < 1e-6
    assert abs(LOSSES["triplet"](sim, pairs, margin=0.2, average="active").item() - 0.6) < 1e-6
