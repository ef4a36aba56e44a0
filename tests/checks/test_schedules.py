"""Schedules whose settings do nothing, against the factor that the engine takes."""

import pytest

from kinfold.checks.schedules import READS, schedule_findings, schedules
from kinfold.engine.schedules import Plateau, factor
from kinfold.engine.settings import ScheduleSettings
from kinfold.recipe import Recipe
from tests.checks.tiny import codes, recipe

OTHER = {
    "warmup_epochs": 2.0,
    "final_factor": 0.5,
    "rise": 0.6,
    "restarts": (2.0,),
    "milestones": (1.0,),
    "every_epochs": 1.5,
    "gamma": 0.5,
    "patience": 0,
}
STEP = {"every_epochs": 2.5}


def course(settings: dict) -> list[float]:
    """Return the factor of every update of four epochs of five updates, evaluations growing worse."""
    schedule = ScheduleSettings(**settings)
    plateau, factors = Plateau(schedule), []
    for step in range(20):
        factors.append(factor(schedule, step, n_steps=20, steps_per_epoch=5) * plateau.scale)
        if step % 5 == 4:
            plateau.see(-float(step))
    return factors


@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize("name", OTHER)
def test_a_setting_is_read_exactly_where_it_changes_the_course(kind, name):
    base = {"kind": kind, **(STEP if kind == "step" else {}), **({"patience": 1} if kind == "plateau" else {})}
    if kind == "one_cycle" and name == "warmup_epochs":
        return  # refused by the settings themselves
    assert (course(base) != course({**base, name: OTHER[name]})) == (name in READS[kind])


def test_settings_of_another_kind_are_idle():
    found = schedule_findings(recipe(schedule={"kind": "constant", "final_factor": 0.1, "gamma": 0.5}))
    assert codes(found) == ["idle_setting"] * 2
    assert "`schedule.final_factor` = 0.1 does nothing: `schedule.kind` = 'constant' does not read it" in found[0].message


@pytest.mark.parametrize("warmup", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_a_warmup_is_too_long_exactly_where_the_peak_is_never_reached(warmup):
    schedule = ScheduleSettings(warmup_epochs=warmup)
    reaches = max(factor(schedule, step, n_steps=20, steps_per_epoch=10) for step in range(20)) == 1
    found = schedule_findings(Recipe(schedule={"warmup_epochs": warmup}, train={"epochs": 2}))
    assert (codes(found) == []) == reaches
    assert reaches == (warmup < 2)


def test_drops_after_the_end_are_idle():
    late = schedule_findings(Recipe(schedule={"kind": "step", "milestones": (2, 4)}, train={"epochs": 4}))
    assert codes(late) == ["idle_setting"] and "before 4" in late[0].message
    late = schedule_findings(Recipe(schedule={"kind": "cosine", "restarts": (1, 4)}, train={"epochs": 4}))
    assert codes(late) == ["idle_setting"] and "before 4" in late[0].message
    assert codes(schedule_findings(Recipe(schedule={"kind": "step", "every_epochs": 4}, train={"epochs": 4}))) == ["idle_setting"]
    assert schedule_findings(Recipe(schedule={"kind": "step", "every_epochs": 2}, train={"epochs": 4})) == []


def test_schedules_of_groups_and_stages_are_looked_at_too():
    wrong = {"kind": "cosine", "gamma": 0.5}
    made = Recipe(
        optimizer={"head": {"schedule": wrong}},
        stage={"main": {"schedule": wrong, "optimizer": {"trunk": {"schedule": wrong}}, "epochs": 3}},
    )
    places = ["schedule", "optimizer.head.schedule", "stage.main.schedule", "stage.main.optimizer.trunk.schedule"]
    assert [key for key, _, _ in schedules(made)] == places
    assert [epochs for *_, epochs in schedules(made)] == [10, 10, 3, 3]
    assert [finding.message.split("`")[1] for finding in schedule_findings(made)] == [f"{place}.gamma" for place in places[1:]]
