"""Which settings make two runs different, and which change no number."""

import pytest

from kinfold.comparison.identity import described, differing, flat, identity, identity_hash
from kinfold.config import Config


def dumped(**changes):
    return Config(**{"run": "a", "data": {"root": "photos"}, **changes}).model_dump(mode="json")


@pytest.mark.parametrize(
    "changes",
    [
        {"run": "elsewhere"},
        {"data": {"root": "/other/place"}},
        {"batches": {"workers": 4}},
        {"train": {"log_every": 1, "checkpoint_minutes": 1.0, "accelerator": "cpu"}},
        {"cache": {"folder": "x", "use": False}},
        {"evaluation": {"memory": "1GB", "keep_embeddings": False, "after_training": False}},
    ],
)
def test_what_changes_no_number_is_left_out(changes):
    assert identity(dumped(**changes)) == identity(dumped())
    assert identity_hash(dumped(**changes)) == identity_hash(dumped())


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"seed": 1}, "seed"),
        ({"model": {"dim": 64}}, "model.dim"),
        ({"data": {"root": "photos", "hold_out_every": 5}}, "data.hold_out_every"),
        ({"optimizer": {"proxies": {"learning_rate": 0.1}}}, "optimizer.groups.proxies.learning_rate"),
        ({"objective": {"loss_options": {"scale": 16.0}}}, "objective.loss_options.scale"),
        ({"evaluation": {"similarity": "dot"}}, "evaluation.similarity"),
        ({"cache": {"half": True}}, "cache.half"),
    ],
)
def test_what_changes_a_number_is_named(changes, key):
    assert key in differing(identity(dumped()), identity(dumped(**changes)))
    assert identity_hash(dumped()) != identity_hash(dumped(**changes))


def test_a_run_older_than_a_setting_counts_with_its_default():
    old = dumped()
    del old["cache"], old["model"]["frozen"], old["evaluation"]["keep_embeddings"]
    assert identity(old) == identity(dumped())


def test_what_the_run_folder_adds_is_no_setting():
    assert identity({**dumped(), "embedder": {"trunk": "convnet"}, "data_fingerprint": "ab"}) == identity(dumped())


def test_settings_of_another_version_are_compared_as_they_are_written():
    strange = {**dumped(), "train": {"epochs": 2, "warp": 9}}
    assert differing(identity(strange), identity({**strange, "train": {"epochs": 2, "warp": 8}})) == ["train.warp"]


def test_runs_made_from_python_are_known_by_recipe_and_model():
    run = {"recipe": {"seed": 3, "train": {"epochs": 2, "log_every": 1}}, "embedder": {"dim": 8}, "data_fingerprint": "ab"}
    assert identity(run) == {"recipe.seed": 3, "recipe.train.epochs": 2, "embedder.dim": 8}


def test_values_are_shortened_in_messages():
    text = described({"a": "x" * 500}, {"a": None}, ["a"])
    assert "null" in text and len(text) < 90


def test_flat_keys_lead_to_their_values():
    assert flat({"a": {"b": {"c": 1}, "d": [1, 2]}, "e": None}) == {"a.b.c": 1, "a.d": [1, 2], "e": None}
