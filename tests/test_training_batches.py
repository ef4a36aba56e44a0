"""From `[batches]` of a recipe to the sampler: hierarchical batches of images and of kept values, and what is refused."""

from collections import Counter
from dataclasses import replace

import pytest

import kinfold
from kinfold.data.samplers import HierarchicalSampler
from kinfold.losses import proxy_anchor
from kinfold.models.feature_cache import FeatureCache
from kinfold.stored import StoredBatches
from kinfold.training_batches import training_batches

HIERARCHICAL = {"sampler": "hierarchical", "level": "kind", "classes_per_group": 3, "images_per_class": 2, "batch_size": 12}


def recipe(*, augment=False, **batches) -> kinfold.Recipe:
    return kinfold.Recipe(
        batches={**HIERARCHICAL, "augment": augment, **batches},
        optimizer={"learning_rate": 1e-3, "proxies": {"learning_rate": 1e-2}},
        train={"epochs": 2},
    )


def embedder(frozen: str | None = None) -> kinfold.Embedder:
    return kinfold.Embedder("convnet", dim=16, size=24, seed=3).freeze(frozen)


@pytest.fixture
def train(tiny_photos):
    """Six classes of eight pictures, of two kinds by turns."""
    return kinfold.read_table(tiny_photos).of_split("train")


@pytest.fixture
def cache(tmp_path):
    return FeatureCache(tmp_path / "cache")


def labels_of(batches):
    return [batch.label.tolist() for epoch in range(2) for batch in batches.epoch(epoch)]


def test_hierarchical_batches_hold_two_kinds_of_three_classes_of_two_images(train):
    batches = labels_of(training_batches(train, embedder(), recipe()))
    assert len(batches) == 2 * (48 // 12)
    for label in batches:
        assert Counter(label) == dict.fromkeys(range(6), 2)


def test_the_groups_are_those_of_the_level(train):
    made = training_batches(train, embedder(), recipe(classes_per_group=2, batch_size=8)).sampler
    how = {"m": 2, "classes_per_group": 2, "batch_size": 8}
    assert list(made) == list(HierarchicalSampler(train.label, train.levels["kind"], **how))


def test_kept_values_come_in_the_same_batches(train, cache):
    small = recipe(classes_per_group=2, batch_size=8)
    kept = training_batches(train, embedder("trunk"), small, cache=cache)
    assert isinstance(kept, StoredBatches)
    assert labels_of(kept) == labels_of(training_batches(train, embedder(), small))


@pytest.mark.parametrize("frozen", [None, "trunk"])
def test_hierarchical_batches_train(tiny_photos, tmp_path, monkeypatch, frozen):
    monkeypatch.setenv("KINFOLD_CACHE", str(tmp_path / "cache"))
    table = kinfold.read_table(tiny_photos)
    model = embedder(frozen)
    trained = kinfold.fit(table, model, kinfold.Proxies(proxy_anchor, 6, 16), run=tmp_path / "run", recipe=recipe())
    assert trained.progress.step == 2 * 4


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (None, "needs `batches.level`, one of: kind."),
        ("kin", "`batches.level` = 'kin' is no level of the table: did you mean `kind`"),
    ],
)
def test_a_missing_or_unknown_level_is_refused_with_the_tables_levels(train, level, words):
    with pytest.raises(kinfold.ConfigError, match=words):
        training_batches(train, embedder(), recipe(level=level))


def test_a_table_without_levels_has_no_hierarchical_batches(train):
    with pytest.raises(kinfold.ConfigError, match=r"the table has no level: add a column such as `label\.family`"):
        training_batches(replace(train, levels={}), embedder(), recipe())


@pytest.mark.parametrize("sampler", ["m_per_class", "random"])
def test_a_level_without_hierarchical_batches_is_refused(sampler):
    with pytest.raises(kinfold.ConfigError, match=f"`batches.level` = 'kind' does nothing with `sampler` = '{sampler}'"):
        recipe(sampler=sampler)


def test_a_missing_level_is_found_before_training(tiny_photos):
    table = kinfold.read_table(tiny_photos)
    found = kinfold.check_training(table, embedder(), kinfold.Proxies(proxy_anchor, 6, 16), recipe(level=None))
    assert [finding.code for finding in found if finding.severity == "error"] == ["cannot_start_batches"]


@pytest.mark.parametrize(("kind", "codes"), [(None, []), ("the same", ["no_far_classes"])])
def test_the_check_looks_at_the_groups(tiny_photos, kind, codes):
    table = kinfold.read_table(tiny_photos)
    if kind:
        table = replace(table, levels={"kind": (kind,) * len(table)})
    found = kinfold.check_training(table, embedder(), kinfold.Proxies(proxy_anchor, 6, 16), recipe())
    assert [finding.code for finding in found if finding.severity != "note"] == codes
