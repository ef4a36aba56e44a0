"""Settings that do nothing or contradict each other, found from the settings alone."""

import pytest

from kinfold.checks.idle import idle
from kinfold.checks.settings import n_evaluations, n_views, setting_findings
from kinfold.recipe import BatchSettings, Recipe
from tests.checks.tiny import codes, recipe, the


def found(made, *, n_val=0, frozen=None):
    return setting_findings(made, n_val=n_val, frozen=frozen)


def keys(findings):
    return [finding.message.split("`")[1] for finding in findings if finding.code == "idle_setting"]


def test_a_healthy_recipe_has_no_idle_setting():
    assert found(recipe()) == []
    assert found(Recipe()) == []
    assert found(recipe(), n_val=10) == []


def test_only_what_was_written_down_is_idle():
    assert found(Recipe(batches={"sampler": "random"})) == []
    assert keys(found(Recipe(batches={"sampler": "random", "images_per_class": 4}))) == ["batches.images_per_class"]


@pytest.mark.parametrize("sampler", ["m_per_class", "random"])
def test_classes_per_group_are_idle_without_groups(sampler):
    assert keys(found(Recipe(batches={"sampler": sampler, "classes_per_group": 2}))) == ["batches.classes_per_group"]
    assert keys(found(Recipe(batches={"sampler": "hierarchical", "level": "family", "classes_per_group": 2}))) == []


def test_values_that_switch_something_off_contradict_nothing():
    assert idle(BatchSettings(flip=False, color_jitter=0), "batches", {"flip": "because", "color_jitter": "because"}) == []


@pytest.mark.parametrize("name, value", [("crop_scale", (0.5, 1.0)), ("flip", True), ("color_jitter", 0.4)])
def test_augmentation_is_idle_on_the_evaluation_view(name, value):
    batches = {"batch_size": 12, "augment": False, name: value}
    assert keys(found(Recipe(batches=batches))) == [f"batches.{name}"]
    assert keys(found(Recipe(batches={**batches, "augment": True}))) == []


def test_a_cache_needs_a_frozen_part():
    with_views = recipe(cache={"views": 2, "half": True})
    assert keys(found(with_views)) == ["cache.half"]
    assert found(with_views, frozen="trunk") == []


def test_views_without_a_frozen_part_limit_what_is_seen(tiny_photos):
    import kinfold
    from kinfold.training_batches import training_batches
    from tests.checks.tiny import embedder

    train = kinfold.read_table(tiny_photos).of_split("train")

    def n_seen(made, epochs=4):
        """Return how many pictures of the first image are shown."""
        batches = training_batches(train, embedder(), made)
        shown = [batch.image[row] for n in range(epochs) for batch in batches.epoch(n) for row in (batch.item == 0).nonzero()]
        return len({image.numpy().tobytes() for image in shown})

    limited, fresh = recipe(cache={"views": 1}, train={"epochs": 4}), recipe(train={"epochs": 4})
    assert n_seen(limited) == 1 < n_seen(fresh)
    finding = the(found(limited), "limited_views")
    assert (
        finding.severity == "warning"
        and "`cache.views` = 1 trains on no more than 1 random view of each image" in finding.message
    )
    assert codes(found(fresh)) == codes(found(limited, frozen="trunk")) == []


def test_views_that_are_never_shown_are_idle():
    assert keys(found(recipe(cache={"views": 3}), frozen="trunk")) == ["cache.views"]
    assert keys(found(recipe(cache={"views": 2}, batches={"augment": False, "crop_scale": (1, 1)}), frozen="trunk")) == [
        "batches.crop_scale",
        "cache.views",
    ]


def test_a_frozen_part_that_is_computed_anew_is_told():
    assert codes(found(recipe(), frozen="trunk"), "note") == ["uncached"]
    assert codes(found(recipe(cache={"use": False}), frozen="trunk"), "note") == []
    assert keys(found(recipe(cache={"use": False, "half": True}), frozen="trunk")) == ["cache.half"]


def test_early_stopping_and_plateau_need_validation():
    both = recipe(train={"early_stopping_patience": 1}, schedule={"kind": "plateau"})
    errors = [finding for finding in found(both) if finding.severity == "error"]
    assert [finding.code for finding in errors] == ["needs_validation"] * 2
    assert "`schedule.kind` = 'plateau'" in errors[0].message
    assert "`train.early_stopping_patience` = 1" in errors[1].message
    assert "data.hold_out_every" in errors[0].remedy
    assert codes(found(recipe(train={"epochs": 9, "early_stopping_patience": 1}), n_val=10)) == []


def test_what_is_about_validation_is_idle_without_it():
    made = recipe(train={"monitor": "map_at_r", "evaluate_every": 2})
    assert keys(found(made)) == ["train.monitor", "train.evaluate_every"]
    assert found(made, n_val=10) == []


def test_an_unknown_monitor_is_an_error_where_it_counts():
    finding = the(found(recipe(train={"monitor": "map_at_t"}), n_val=10), "unknown_monitor")
    assert finding.severity == "error" and "did you mean `map_at_r`" in finding.remedy


@pytest.mark.parametrize("patience", range(1, 6))
def test_patience_is_idle_exactly_where_the_worst_run_would_not_stop_early(patience):
    epochs, n_waited, stopped = 5, 0, None
    for epoch in range(epochs):  # the first evaluation is the best, all others are worse
        n_waited = 0 if epoch == 0 else n_waited + 1
        if n_waited >= patience and stopped is None:
            stopped = epoch
    stops_early = stopped is not None and stopped < epochs - 1
    findings = found(recipe(train={"epochs": epochs, "early_stopping_patience": patience}), n_val=10)
    assert (keys(findings) == []) == stops_early


@pytest.mark.parametrize("patience", range(5))
def test_plateau_is_idle_exactly_where_no_epoch_would_train_with_a_lower_rate(patience):
    from kinfold.engine.schedules import Plateau
    from kinfold.engine.settings import ScheduleSettings

    epochs, rule = 5, Plateau(ScheduleSettings(kind="plateau", patience=patience))
    scales = []
    for epoch in range(epochs):
        scales.append(rule.scale)
        rule.see(-float(epoch))
    findings = found(recipe(schedule={"kind": "plateau", "patience": patience}, train={"epochs": epochs}), n_val=10)
    assert (keys(findings) == []) == (min(scales) < 1)


def test_no_epochs_are_a_note():
    assert codes(found(recipe(train={"epochs": 0})), "note") == ["no_training"]


@pytest.mark.parametrize("epochs", range(1, 8))
@pytest.mark.parametrize("every", range(1, 5))
def test_evaluations_are_counted_as_the_loop_makes_them(epochs, every):
    made = sum(epoch + 1 == epochs or (epoch + 1) % every == 0 for epoch in range(epochs))
    assert n_evaluations(recipe(train={"epochs": epochs, "evaluate_every": every})) == made


def test_as_many_views_are_kept_as_epochs_show():
    assert [n_views(recipe(train={"epochs": 3}, cache={"views": views})) for views in (1, 2, 5)] == [1, 2, 3]
    assert n_views(recipe(batches={"augment": False}, cache={"views": 2})) == 1


def test_optimiser_settings_that_no_optimiser_reads():
    assert keys(found(recipe(optimizer={"momentum": 0.8}))) == ["optimizer.momentum"]
    assert keys(found(recipe(optimizer={"kind": "sgd", "betas": (0.8, 0.9), "eps": 1e-6}))) == [
        "optimizer.betas",
        "optimizer.eps",
    ]
    of_one_group = recipe(optimizer={"momentum": 0.8, "head": {"kind": "sgd"}})
    assert found(of_one_group) == []
