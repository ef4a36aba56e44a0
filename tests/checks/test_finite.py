"""Numbers that are not finite: which, and when."""

import pytest
import torch

import kinfold
from kinfold.checks.training import check_training
from kinfold.records import Losses
from tests.checks.tiny import WITHOUT_PROXIES, codes, embedder, proxies, recipe, the


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


class Faulty(kinfold.Objective):
    """A sound term, and one that is made of the embeddings by `make`; `after` counts updates."""

    def __init__(self, table, make):
        super().__init__()
        self.inner, self.make = proxies(table), make
        self.register_buffer("n_steps", torch.zeros(()))

    def forward(self, batch, phase="main"):
        return Losses({**self.inner(batch).terms, "odd": self.make(batch.embedding, self.n_steps)})

    def parameter_groups(self):
        return self.inner.parameter_groups()

    def on_step_end(self, step):
        self.n_steps += 1


def test_a_term_that_is_not_finite_is_named(table):
    objective = Faulty(table, lambda x, n: x.sum() / 0)
    found = check_training(table, embedder(), objective, recipe())
    finding = the(found, "not_finite")
    assert finding.severity == "error" and "the loss term `odd` is " in finding.message
    assert "on the first batch" in finding.message
    assert "step_sizes" not in codes(found, "note")


def test_a_gradient_that_is_not_finite_is_named_by_its_term(table):
    objective = Faulty(table, lambda x, n: (x - x.detach()).square().sum(1).sqrt().sum())
    finding = the(check_training(table, embedder(), objective, recipe()), "not_finite")
    assert "the gradient of the loss term `odd` is not finite, although its value is 0, on the first batch" in finding.message


def test_embeddings_that_are_not_finite_are_told(table):
    model = embedder()
    with torch.no_grad():
        model.head.linear.bias[0] = float("nan")
    finding = the(check_training(table, model, proxies(table), recipe()), "not_finite")
    assert finding.message.startswith("the embeddings are not finite")


def test_what_breaks_after_updates_at_the_peak_is_a_warning(table):
    objective = Faulty(table, lambda x, n: x.sum() * 0 / (1 - n))
    found = check_training(table, embedder(), objective, recipe())
    finding = the(found, "not_finite")
    assert finding.severity == "warning" and "after 1 update(s) at the peak" in finding.message
    assert "step_sizes" in codes(found, "note"), "the first update is judged nevertheless"


def test_pairs_of_equal_pictures_and_a_root_at_zero_are_not_a_false_alarm(table):
    found = check_training(
        table, embedder(), kinfold.Pairwise(kinfold.losses.LOSSES["multi_similarity"]), recipe(WITHOUT_PROXIES)
    )
    assert codes(found) == []
