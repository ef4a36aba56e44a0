"""The whole check from Python: a healthy world is healthy, each fault is found, and nothing is touched."""

import copy
import random

import numpy as np
import pytest
import torch

import kinfold
from kinfold.checks.training import check_training
from kinfold.engine.seeding import random_state
from kinfold.losses import multi_similarity
from tests.checks.tiny import DIM, WITHOUT_PROXIES, codes, embedder, pairwise, proxies, recipe, the

NOTES = {"step_sizes", "speed", "estimated_time", "estimated_memory", "estimated_disk"}


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


@pytest.mark.parametrize(
    "make, made",
    [
        (proxies, recipe()),
        (lambda table: kinfold.Pairwise(multi_similarity), recipe(WITHOUT_PROXIES)),
        (proxies, recipe(train={"precision": "bf16-mixed", "frozen_batch_norm": True}, batches={"workers": 1})),
        (proxies, recipe(optimizer={"kind": "sgd", "trunk": {"frozen_epochs": 1}}, train={"gradient_accumulation_steps": 2})),
    ],
)
def test_a_healthy_world_has_no_warning(table, make, made):
    found = check_training(table, embedder(), make(table), made)
    assert codes(found) == []
    assert {finding.code for finding in found} >= NOTES


@pytest.mark.parametrize("cache", [{"views": 2}, {"use": False}, {}])
def test_a_frozen_trunk_is_healthy(table, cache, tmp_path):
    found = check_training(
        table,
        embedder().freeze(),
        proxies(table),
        recipe(cache={"folder": str(tmp_path / "c"), **cache} if cache.get("use", True) else cache),
    )
    assert codes(found) == [] and "frozen_group" in codes(found, "note")
    assert not (tmp_path / "c").exists()


def test_nothing_of_the_callers_changes(table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model, objective = embedder().freeze("blocks.0"), proxies(table)
    model.head.eval()
    model.classes = ["a", "b"]
    before = copy.deepcopy((model.state_dict(), objective.state_dict()))
    asked = [(name, p.requires_grad, p.grad) for name, p in model.named_parameters()]
    modes = [part.training for part in model.modules()]
    state = random_state()
    images = {file: file.stat().st_mtime_ns for file in table.root.rglob("*")}
    check_training(
        table, model, objective, recipe(train={"precision": "bf16-mixed"}, cache={"folder": str(tmp_path / "cache"), "views": 1})
    )
    for old, new in zip(before, (model.state_dict(), objective.state_dict()), strict=True):
        assert old.keys() == new.keys() and all(torch.equal(old[name], new[name]) for name in old)
    assert asked == [(name, p.requires_grad, p.grad) for name, p in model.named_parameters()]
    assert modes == [part.training for part in model.modules()]
    assert model.classes == ["a", "b"]
    after = random_state()
    assert torch.equal(state["torch"], after["torch"]) and state["python"] == after["python"]
    assert torch.equal(state["numpy"][1], after["numpy"][1])
    assert {file: file.stat().st_mtime_ns for file in table.root.rglob("*")} == images
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_generators_that_a_loss_was_given_are_left_where_they_were(table):
    from functools import partial

    from kinfold.core.mining import distance_weighted
    from kinfold.losses import triplet

    generator = torch.Generator().manual_seed(5)
    before = generator.get_state()
    objective = kinfold.Pairwise(partial(triplet, pick=partial(distance_weighted, dim=DIM, generator=generator)))
    check_training(table, embedder(), objective, recipe(WITHOUT_PROXIES))
    assert torch.equal(before, generator.get_state())


def test_the_findings_are_the_same_each_time(table):
    def judged():
        random.seed(), np.random.seed(None), torch.seed()
        found = check_training(table, embedder(), proxies(table), recipe())
        return the(found, "step_sizes").message

    assert judged() == judged()


def test_an_error_leaves_the_rehearsal_out_and_says_so(table):
    found = check_training(table, embedder(), pairwise(), recipe())
    assert codes(found) == ["unknown_group"]
    assert "rehearsal_left_out" in codes(found, "note") and not NOTES & set(codes(found, "note"))


def test_faults_of_several_kinds_are_found_in_one_go(table):
    made = recipe(
        batches={"sampler": "random", "augment": False, "images_per_class": 2},
        schedule={"kind": "constant", "gamma": 0.3},
        optimizer={"head": {"frozen_epochs": 2}},
        cache={"views": 2},
    )
    found = check_training(table, embedder(), proxies(table, lr_scale=1.0), made)
    assert sorted(codes(found)) == ["frozen_head"] + ["idle_setting"] * 4
    assert [finding.severity for finding in found] == sorted((f.severity for f in found), key=["error", "warning", "note"].index)
    assert all(finding.message and finding.remedy for finding in found)


def test_slow_proxies_and_a_frozen_head_name_their_keys(table):
    without = recipe(WITHOUT_PROXIES, optimizer={"head": {"learning_rate": 0.0}})
    found = check_training(table, embedder(), proxies(table, lr_scale=1.0), without)
    assert sorted(codes(found)) == ["frozen_head", "slow_proxies"]
    assert "optimizer.head.learning_rate" in the(found, "frozen_head").remedy


@pytest.mark.parametrize("batches", [{"batch_size": 49}, {"batch_size": 2}, {"sampler": "random", "batch_size": 49}])
def test_batches_that_cannot_be_drawn_are_an_error(table, batches):
    assert codes(check_training(table, embedder(), proxies(table), recipe(batches=batches)), "error") == ["cannot_start_batches"]


def test_what_this_machine_does_not_have_is_an_error(table):
    missing = "cuda" if not torch.cuda.is_available() else "mps"
    found = check_training(table, embedder(), proxies(table), recipe(train={"accelerator": missing}))
    assert codes(found) == ["cannot_start_training"] and missing in found[0].message


def test_a_broken_image_in_the_first_batches_is_an_error(table, tmp_path):
    from dataclasses import replace

    broken = replace(
        table, path=tuple("gone.png" if split == "train" else path for path, split in zip(table.path, table.split, strict=True))
    )
    found = check_training(broken, embedder(), proxies(table), recipe())
    assert codes(found) == ["cannot_start_training"] and "gone.png" in found[0].message


def test_without_epochs_nothing_is_rehearsed(table):
    found = check_training(table, embedder(), proxies(table), recipe(train={"epochs": 0}))
    assert codes(found) == [] and not NOTES & set(codes(found, "note"))
    assert "no_training" in codes(found, "note")


def test_defaults_can_be_left_out(table):
    many = table.subset(np.tile(np.arange(len(table)) < 48, 1))
    found = check_training(many, embedder(), proxies(table), None)
    assert "cannot_start_batches" in codes(found), "64 images a batch, of 48"
