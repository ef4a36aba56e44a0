"""What an update's figures mean: each fault by itself, and none in a healthy step."""

from functools import partial

import pytest
import torch
from torch import nn

import kinfold
from kinfold.checks.dry_step import DryStep, GroupStep, dry_step
from kinfold.checks.gradients import gradient_findings
from kinfold.core.mining import batch_hard
from kinfold.core.similarity import cosine
from kinfold.losses import triplet
from kinfold.records import Embedded
from tests.checks.test_dry_step import rehearsed
from tests.checks.tiny import WITHOUT_PROXIES, codes, embedder, pairwise, proxies, recipe, the


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


def judged(table, model, objective, made):
    return gradient_findings(dry_step(*rehearsed(table, model, objective, made)))


def test_a_healthy_step_gives_its_figures_alone(table):
    found = judged(table, embedder(), proxies(table), recipe())
    assert [finding.code for finding in found] == ["step_sizes"]
    for group in ("trunk", "head", "proxies"):
        assert f"`{group}` learning rate" in found[0].message


def test_a_head_cut_off_from_the_loss_is_an_error(table):
    class Cut(nn.Module):
        def __init__(self, head):
            super().__init__()
            self.head = head

        def forward(self, feature):
            return self.head(feature.detach()).detach() + feature[:, :16]

    model = embedder()
    model.head = Cut(model.head)
    finding = the(judged(table, model, proxies(table), recipe()), "frozen_head")
    assert finding.severity == "error" and "`head` gets no gradient" in finding.message


def test_a_trunk_cut_off_from_the_loss_is_a_warning(table):
    class Cut(nn.Module):
        def forward(self, x):
            return x.detach()

    model = embedder()
    model.pool = nn.Sequential(model.pool, Cut())
    finding = the(judged(table, model, proxies(table), recipe()), "frozen_group")
    assert finding.severity == "warning" and "`trunk` gets no gradient" in finding.message


def test_parameters_that_the_network_leaves_out_are_a_note(table):
    model = embedder()
    model.head.spare = nn.Linear(2, 2)
    finding = the(judged(table, model, proxies(table), recipe()), "no_gradient")
    assert finding.severity == "note" and "2 of 4 parameters of `head`" in finding.message


def test_a_learning_rate_too_small_for_float32_is_told(table):
    made = recipe(optimizer={"weight_decay": 0.0, "head": {"learning_rate": 1e-14}, "trunk": {"learning_rate": 1e-3}})
    model = embedder()
    nn.init.ones_(model.head.linear.bias)
    finding = the(judged(table, model, proxies(table), made), "frozen_head")
    assert finding.severity == "warning" and "optimizer.head.learning_rate" in finding.remedy


def test_proxies_no_faster_than_the_trunk_are_slow(table):
    plain = {"optimizer": {"learning_rate": 1e-3}}
    finding = the(judged(table, embedder(), proxies(table, lr_scale=1.0), recipe(WITHOUT_PROXIES)), "slow_proxies")
    assert finding.severity == "warning" and "objective.lr_scale = 100" in finding.remedy
    assert codes(judged(table, embedder(), proxies(table, lr_scale=2.0), recipe(WITHOUT_PROXIES, **plain))) == []
    frozen = embedder().freeze("trunk")
    assert codes(judged(table, frozen, proxies(table, lr_scale=1.0), recipe(WITHOUT_PROXIES))) == [], "there is no trunk's rate"


def test_an_update_as_large_as_the_weights_is_told(table):
    finding = the(judged(table, embedder(), proxies(table), recipe(optimizer={"head": {"learning_rate": 2.0}})), "large_step")
    assert "optimizer.head.learning_rate" in finding.remedy


def test_a_batch_that_teaches_nothing_is_told_once(table):
    objective = pairwise(positive_threshold=-2.0, negative_threshold=2.0)
    assert codes(judged(table, embedder(), objective, recipe(WITHOUT_PROXIES))) == ["inactive_batch"]


def step_of(active, *, n=20, of_class=4):
    label = torch.arange(n) // of_class
    embedded = Embedded(torch.eye(n), torch.eye(n), label, torch.arange(n), torch.zeros(n, dtype=torch.long))
    group = GroupStep("head", 2, 1e-3, 1.0, 0.01, 0)
    return DryStep((group,), {"loss": 1.0}, False, active, embedded)


@pytest.mark.parametrize(
    "active, is_few",
    [
        ({"active_positive": 0.04, "active_negative": 0.01}, True),  # 2 of 60 and 3 of 320
        ({"active_positive": 0.0, "active_negative": 0.0}, True),
        ({"active_negative": 0.01}, True),
        ({"active_positive": 0.05, "active_negative": 0.0}, False),
        ({"active_positive": 0.0, "active_negative": 0.04}, False),  # 13 of 320: more than one for every two images
        ({}, False),
    ],
)
def test_few_active_pairs_are_told(active, is_few):
    assert (codes(gradient_findings(step_of(active))) == ["few_active_pairs"]) == is_few


def test_the_counts_of_few_active_pairs_are_told():
    message = the(gradient_findings(step_of({"active_positive": 2 / 60, "active_negative": 3 / 320})), "few_active_pairs").message
    assert "2 of 60 positive pairs and 3 of 320 negative pairs have a gradient, in 20 images" in message


def test_hard_mining_is_few_by_design_and_healthy(table):
    objective = kinfold.Pairwise(partial(triplet, pick=batch_hard, margin=0.5))
    assert (
        codes(judged(table, embedder(), objective, recipe(WITHOUT_PROXIES, batches={"batch_size": 48, "images_per_class": 8})))
        == []
    )


def test_a_margin_that_hardly_any_pair_violates_leaves_few(table):
    rehearsal, batch = rehearsed(table, embedder(), pairwise(), recipe(WITHOUT_PROXIES))
    with torch.no_grad():
        sim = cosine(*[rehearsal.session.model(batch.image)[1]] * 2)
    negatives = sim[batch.label[:, None] != batch.label[None, :]].sort(descending=True).values
    threshold = float(negatives[1:3].mean())  # each pair stands there twice
    objective = pairwise(positive_threshold=-2.0, negative_threshold=threshold)
    finding = the(judged(table, embedder(), objective, recipe(WITHOUT_PROXIES)), "few_active_pairs")
    assert "0 of 24 positive pairs and 2 of 108 negative pairs have a gradient, in 12 images" in finding.message
