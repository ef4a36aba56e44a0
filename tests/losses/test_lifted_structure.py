import torch

from kinfold.losses import LOSSES
from kinfold.records import Pairs


def test_a_pair_meets_the_negatives_of_its_row_and_of_its_column():
    positive = torch.tensor([[True, False], [False, False]])
    sim = torch.tensor([[0.5, 0.25], [0.75, 0.0]], dtype=torch.float64)
    by_row, by_column = torch.tensor([[False, True], [False, False]]), torch.tensor([[False, False], [True, False]])
    for negative, far in ((by_row, 0.25), (by_column, 0.75)):
        value = LOSSES["lifted_structure"](sim, Pairs(positive, negative), per="pair")
        torch.testing.assert_close(value.item(), (far + 1 - 0.5) ** 2 / 2)


def test_a_positive_without_any_negative_adds_nothing_but_counts_in_the_average():
    sim = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    pairs = Pairs(torch.tensor([[True, False], [False, True]]), torch.tensor([[False, False], [False, False]]))
    one_negative = Pairs(torch.tensor([[True, False], [False, True]]), torch.tensor([[False, True], [False, False]]))
    nothing = LOSSES["lifted_structure"](sim, pairs, per="pair")
    nothing.backward()
    assert nothing.item() == 0.0
    assert sim.grad is not None
    assert (sim.grad == 0).all()
    assert LOSSES["lifted_structure"](sim, one_negative, per="pair").item() == 0.5
