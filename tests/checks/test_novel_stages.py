"""Stages of generated classes that never begin, or begin untaught; very many classes; a sound one is let pass."""

import pytest

from kinfold.checks.novel_stages import novel_stage_findings
from kinfold.checks.training import check_training
from kinfold.data.read import read_table
from kinfold.objectives import NovelClasses
from tests.checks.tiny import codes, embedder, proxies, recipe, the

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
