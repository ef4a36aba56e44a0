"""Stages of generated classes that never begin, or begin untaught; very many classes; a sound one is let pass."""

import pytest

import kinfold
from kinfold.checks.memory import StepMemory
from kinfold.checks.novel_stages import divergence_findings, epochs_of_stages, novel_stage_findings
from kinfold.checks.training import check_training
from kinfold.core.divergence import classwise_kl
from kinfold.data.read import read_table
from kinfold.losses import multi_similarity
from kinfold.objectives import NovelClasses
from tests.checks.tiny import DIM, WITHOUT_PROXIES, codes, embedder, proxies, recipe, the

SOUND = {"pretraining_epochs": 1, "novel_ratio": 1.0, "hidden_dim": 4}


@pytest.fixture
def table(tiny_photos):
    return read_table(tiny_photos)


def found(table, *, epochs=2, schedule="constant", stage=None, **changes):
    objective = NovelClasses(proxies(table), **{**SOUND, **changes})
    return novel_stage_findings(
        objective, embedder(), recipe(train={"epochs": epochs}, schedule={"kind": schedule}, stage=stage or {})
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, []),
        ({"pretraining_epochs": 2}, ["joint_never_begins"]),
        ({"pretraining_epochs": 3}, ["joint_never_begins"]),
        ({"pretraining_epochs": 0}, ["no_pretraining"]),
        ({"schedule": "cosine"}, ["joint_rate"]),
        ({"schedule": "cosine", "stage": {"joint": {"optimizer": {"learning_rate": 1e-4}}}}, []),
        ({"novel_ratio": 2000.0}, ["many_novel_classes"]),
        ({"novel_ratio": 2000.0, "max_novel": 6}, []),
        ({"novel_ratio": 0.0, "pretraining_epochs": 9}, []),
    ],
)
def test_stages_are_held_against_the_run(table, changes, code):
    assert codes(found(table, **changes), "warning", "note") == code


def test_other_objectives_have_no_stages(table):
    assert novel_stage_findings(proxies(table), embedder(), recipe()) == []


def test_a_whole_check_rehearses_both_phases(table):
    findings = check_training(table, embedder(), NovelClasses(proxies(table), pretraining_epochs=2), recipe())
    assert "`objective.pretraining_epochs` = 2 of `train.epochs` = 2" in the(findings, "joint_never_begins").message
    steps = the(findings, "step_sizes").message
    assert all(f"`{group}` learning rate" in steps for group in ("trunk", "proxies", "generator", "novel_proxies"))
    assert codes(findings, "error") == []


def test_a_run_is_divided_into_the_stages_that_it_reaches(table):
    def divided(pretraining_epochs, epochs=5):
        return epochs_of_stages(NovelClasses(proxies(table), pretraining_epochs=pretraining_epochs), epochs)

    assert divided(2) == {"pretraining": 2, "joint": 3}
    assert divided(0) == {"joint": 5}
    assert divided(5) == divided(9) == {"pretraining": 5}
    assert epochs_of_stages(proxies(table), 4) == {"main": 4}


def test_each_stage_is_rehearsed_with_its_own_learning_rates(table):
    made = recipe(
        train={"epochs": 3},
        stage={"joint": {"optimizer": {"novel_proxies": {"learning_rate": 5e-3}, "head": {"learning_rate": 2e-4}}}},
    )
    findings = check_training(table, embedder(), NovelClasses(proxies(table), pretraining_epochs=2), made)
    assert codes(findings) == []
    pretraining, joint = (finding.message for finding in findings if finding.code == "step_sizes")
    assert pretraining.startswith("one update") and "`head` learning rate 0.001" in pretraining
    assert joint.startswith("joint stage: one update")
    assert "`novel_proxies` learning rate 0.005" in joint and "`head` learning rate 0.0002" in joint
    assert "no gradient" not in pretraining + joint
    time = the(findings, "estimated_time").message
    assert "to train (pretraining " in time and ", joint " in time


@pytest.mark.parametrize("saved", [(8_000_000, 3_000_000), (3_000_000, 8_000_000)])
def test_memory_is_that_of_the_larger_stage(table, monkeypatch, saved):
    from kinfold.checks import training

    first_step, left = training._first_step, list(saved)

    def with_known_memory(*how):
        step, _, seconds = first_step(*how)
        return step, StepMemory(saved=left.pop(0), rise=1000 * len(left)), seconds

    monkeypatch.setattr(training, "_first_step", with_known_memory)
    found = check_training(table, embedder(), NovelClasses(proxies(table), pretraining_epochs=1), recipe())
    assert "activations 8.0 MB; memory in use rose by 1.0 kB in the first step" in the(found, "estimated_memory").message
    assert not left


def test_over_a_pair_loss_both_stages_are_rehearsed_too(table):
    objective = NovelClasses(
        kinfold.Pairwise(multi_similarity), pretraining_epochs=1, n_classes=table.of_split("train").n_classes, dim=DIM
    )
    findings = check_training(table, embedder(), objective, recipe(WITHOUT_PROXIES))
    assert codes(findings) == []
    assert objective.stage == "pretraining" and objective.generator.draws.n == 0, "the caller's stays as it is"


def test_a_stage_that_breaks_is_named_before_the_run(table):
    """The joint stage at a rate at which everything overflows: nothing but a rehearsal of it can tell."""
    made = recipe(stage={"joint": {"optimizer": {"head": {"learning_rate": 1e30}}}})
    findings = check_training(table, embedder(), NovelClasses(proxies(table), pretraining_epochs=1), made)
    assert "large_step" in codes(findings) or "not_finite" in codes(findings)
    calm = check_training(table, embedder(), NovelClasses(proxies(table), pretraining_epochs=2), made)
    assert codes(calm) == ["joint_never_begins"]


class TestIdleDivergence:
    def objective(self, table, **changes):
        changes = {"divergence": classwise_kl, "pretraining_epochs": 1, **changes}
        return NovelClasses(proxies(table), **changes)

    def test_one_image_of_each_class_leaves_a_divergence_of_classes_idle(self, table):
        made = recipe(batches={"batch_size": 6, "images_per_class": 1})
        findings = check_training(table, embedder(), self.objective(table), made)
        assert set(codes(findings)) == {"idle_divergence"}
        assert "images_per_class" in findings[0].remedy
        assert codes(check_training(table, embedder(), self.objective(table, max_novel=2), recipe())) == []

    def test_it_is_let_pass_where_it_is_at_work_or_was_switched_off(self, table):
        idle = {"metric": 1.0, "divergence": 0.0}
        assert [f.code for f in divergence_findings(self.objective(table), idle)] == ["idle_divergence"]
        assert divergence_findings(self.objective(table), {**idle, "divergence": 1e-9}) == []
        assert divergence_findings(self.objective(table, divergence_weight=0.0), idle) == []
        assert divergence_findings(self.objective(table, novel_ratio=0.0), {"proxy_anchor": 1.0}) == []
        assert divergence_findings(proxies(table), idle) == []
