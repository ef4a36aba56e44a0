"""One update, against plain torch: gradients by group, how far each moves, what stays untouched."""

import copy
import math
from functools import partial

import pytest
import torch

import kinfold
from kinfold.checks.dry_step import dry_step
from kinfold.checks.rehearsal import at_peak, rehearse
from kinfold.engine.settings import FitSettings
from kinfold.losses import contrastive
from kinfold.records import Embedded
from kinfold.training_batches import training_batches
from tests.checks.tiny import WITHOUT_PROXIES, embedder, pairwise, proxies, recipe

SGD = {"kind": "sgd", "momentum": 0.0, "weight_decay": 0.0, "learning_rate": 1e-3, "proxies": {"learning_rate": 0.1}}


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


def rehearsed(table, model, objective, made):
    """Return a rehearsal and its first batch, as it gets it."""
    train = table.of_split("train")
    batches = training_batches(train, model, made)
    batch = next(iter(batches.epoch(0)))
    rehearsal = rehearse(train, model, objective, made, n_batches=len(batches))
    return rehearsal, rehearsal.fed(batch)


def test_gradients_and_moves_are_those_of_plain_torch(table):
    model, objective = embedder(), proxies(table)
    made = recipe(optimizer=SGD, schedule={"kind": "constant"})
    rehearsal, batch = rehearsed(table, model, objective, made)
    step = dry_step(rehearsal, batch)

    plain, loss = copy.deepcopy((model, objective))
    plain.train()
    feature, embedding = plain(batch.image)
    total = loss(Embedded(embedding, feature, batch.label, batch.item, batch.view)).total
    total.backward()
    assert step.values["loss"] == pytest.approx(total.item(), rel=1e-5)
    assert [group.name for group in step.groups] == ["trunk", "head", "proxies"]
    for found, group in zip(step.groups, [*plain.parameter_groups(), *loss.parameter_groups()], strict=True):
        norm = math.sqrt(sum(float(p.grad.square().sum()) for p in group.params))
        size = math.sqrt(sum(float(p.detach().square().sum()) for p in group.params))
        rate = 0.1 if group.name == "proxies" else 1e-3
        assert found.grad_norm == pytest.approx(norm, rel=1e-3)
        assert found.change == pytest.approx(rate * norm / size, rel=1e-2)
        assert (found.learning_rate, found.without_gradient, found.n_tensors) == (rate, 0, len(group.params))


def test_an_update_is_made_at_the_peak_whatever_the_schedule(table):
    warm = {"kind": "cosine", "warmup_epochs": 1}
    changes = []
    for schedule, of_head in (({"kind": "constant"}, None), (warm, None), ({"kind": "one_cycle"}, warm)):
        made = recipe(optimizer={**SGD, "head": {"schedule": of_head}}, schedule=schedule)
        rehearsal, batch = rehearsed(table, embedder(), proxies(table), made)
        changes.append([group.change for group in dry_step(rehearsal, batch).groups])
    assert changes[0] == changes[1] == changes[2]


def test_stages_too_are_taken_at_their_peak():
    stage = {"main": {"schedule": {"kind": "cosine"}, "optimizer": {"learning_rate": 0.5}, "epochs": 3}}
    found = at_peak(FitSettings(stages=stage)).stages["main"]
    assert found.schedule is None and found.optimizer.learning_rate == 0.5 and found.epochs == 3


def test_what_trains_in_the_last_epoch_trains(table):
    made = recipe(optimizer={"trunk": {"frozen_epochs": 1}, "head": {"frozen_epochs": 2}})
    rehearsal, batch = rehearsed(table, embedder(), proxies(table), made)
    trunk, head, own = dry_step(rehearsal, batch).groups
    assert trunk.n_tensors > 0 and trunk.grad_norm > 0
    assert head.n_tensors == 0 and head.change == 0 and math.isnan(head.grad_norm)
    assert own.change > 0


def test_a_frozen_trunk_trains_from_values_or_from_images_alike(table):
    steps = []
    for use in (True, False):
        made = recipe(cache={"views": 2, "use": use})
        rehearsal, batch = rehearsed(table, embedder().freeze("trunk"), proxies(table), made)
        assert (rehearsal.front is not None) == use and (batch.image.ndim == 2) == use
        steps.append(dry_step(rehearsal, batch))
    assert [group.name for group in steps[0].groups] == ["head", "proxies"]
    assert steps[0].values["loss"] == pytest.approx(steps[1].values["loss"], rel=1e-5)


def test_the_callers_objects_stay_as_they_are(table):
    model, objective = embedder(), proxies(table)
    model.head.train(False)
    before = copy.deepcopy((model.state_dict(), objective.state_dict()))
    rehearsal, batch = rehearsed(table, model, objective, recipe())
    dry_step(rehearsal, batch)
    for old, new in zip(before, (model.state_dict(), objective.state_dict()), strict=True):
        assert all(torch.equal(old[name], new[name]) for name in old)
    assert all(p.grad is None for p in [*model.parameters(), *objective.parameters()])
    assert model.training and not model.head.training and objective.training


def test_a_batch_without_an_active_pair_is_inactive(table):
    rehearsal, batch = rehearsed(
        table, embedder(), pairwise(positive_threshold=-2.0, negative_threshold=2.0), recipe(WITHOUT_PROXIES)
    )
    step = dry_step(rehearsal, batch)
    assert step.is_inactive and step.values["loss"] == 0
    assert step.health == {"active_positive": 0.0, "active_negative": 0.0}
    assert all(group.grad_norm == 0 and group.without_gradient == group.n_tensors for group in step.groups)


def test_a_batch_may_be_inactive_after_another_was_not(table):
    rehearsal, batch = rehearsed(table, embedder(), pairwise(), recipe(WITHOUT_PROXIES))
    assert not dry_step(rehearsal, batch).is_inactive
    rehearsal.objective.loss = partial(contrastive, positive_threshold=-2.0, negative_threshold=2.0)
    assert dry_step(rehearsal, batch).is_inactive


def test_an_objective_may_ask_for_the_training_set(table):
    class Asks(kinfold.Objective):
        def __init__(self):
            super().__init__()
            self.inner, self.n_rows = kinfold.Pairwise(contrastive), 0

        def forward(self, batch, phase="main"):
            return self.inner(batch)

        def on_epoch_start(self, epoch, train_set):
            self.n_rows = len(train_set.embed().embedding)
            assert train_set.n_classes == 6

    objective = Asks()
    rehearsal, _ = rehearsed(table, embedder(), objective, recipe(WITHOUT_PROXIES))
    assert rehearsal.embeds_train_set and rehearsal.objective.n_rows == 48 and objective.n_rows == 0
    rehearsal, _ = rehearsed(table, embedder(), pairwise(), recipe(WITHOUT_PROXIES))
    assert not rehearsal.embeds_train_set
