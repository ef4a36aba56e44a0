"""Precision asked for against full precision."""

import pytest
import torch
from torch import nn

import kinfold
from kinfold.checks.precision import parity, precision_findings
from kinfold.checks.training import check_training
from tests.checks.test_dry_step import rehearsed
from tests.checks.tiny import codes, embedder, proxies, recipe, the

BF16 = {"train": {"precision": "bf16-mixed"}}


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


class Delicate(nn.Module):
    """A head that subtracts a large number again: eight bits do not hold the difference."""

    def __init__(self, head):
        super().__init__()
        self.head = head
        self.large = nn.Linear(16, 16, bias=False)
        nn.init.eye_(self.large.weight)

    def forward(self, feature):
        x = self.head(feature).float()
        return self.large(x + 4096.0).float() - 4096.0


def test_the_figures_are_those_of_two_plain_passes(table):
    model, objective = embedder(), proxies(table)
    rehearsal, batch = rehearsed(table, model, objective, recipe(**BF16))
    found = parity(rehearsal, batch, "bf16-mixed")
    model.eval()
    with torch.no_grad():
        full = model(batch.image)[1]
        with torch.autocast("cpu", torch.bfloat16):
            half = model(batch.image)[1].float()
    cosines = [float(a @ b / a.norm() / b.norm()) for a, b in zip(full, half, strict=True)]
    assert found.mean == pytest.approx(sum(cosines) / len(cosines), abs=1e-6)
    assert found.least == pytest.approx(min(cosines), abs=1e-6)
    for x, loss in ((full, found.full_loss), (half, found.loss)):
        with torch.no_grad():
            assert loss == pytest.approx(float(objective.terms(x, batch.label).total), rel=1e-4)
    assert found.least < 1 and found.loss != found.full_loss


def test_a_sound_model_gives_a_note(table):
    finding = the(check_training(table, embedder(), proxies(table), recipe(**BF16)), "precision_parity")
    assert finding.severity == "note" and "`train.precision` = 'bf16-mixed'" in finding.message


def test_a_model_that_needs_more_digits_gives_a_warning(table):
    model = embedder()
    model.head = Delicate(model.head)
    found = check_training(table, model, proxies(table), recipe(**BF16))
    finding = the(found, "precision_parity")
    assert finding.severity == "warning" and "train.precision = '32-true'" in finding.remedy


def test_full_precision_is_not_compared_with_itself(table):
    assert "precision_parity" not in codes(check_training(table, embedder(), proxies(table), recipe()), "note", "warning")


def test_not_a_number_is_a_warning(table):
    from kinfold.checks.precision import Parity

    assert precision_findings(Parity(float("nan"), float("nan"), 1.0, 1.0), "16-mixed")[0].severity == "warning"


def test_nothing_is_remembered_of_the_comparison(table):
    class Remembers(kinfold.Objective):
        def __init__(self):
            super().__init__()
            self.inner = proxies(table)
            self.register_buffer("n_seen", torch.zeros(()))

        def forward(self, batch, phase="main"):
            self.n_seen += 1
            return self.inner(batch)

        def parameter_groups(self):
            return self.inner.parameter_groups()

    rehearsal, batch = rehearsed(table, embedder(), Remembers(), recipe(**BF16))
    parity(rehearsal, batch, "bf16-mixed")
    assert float(rehearsal.objective.n_seen) == 0
