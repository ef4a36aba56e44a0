"""Training from kept outputs of a frozen part is training from the images."""

import os
import shutil
from pathlib import Path

import pytest
import torch

import kinfold
from kinfold.engine.watch import NoWatch
from kinfold.errors import ConfigError, DataError
from kinfold.head_start import start_head
from kinfold.losses import proxy_anchor
from kinfold.measure import embed_table
from kinfold.models.feature_cache import FeatureCache

UNTIMED = ("time", "images_per_second", "wait_share")


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KINFOLD_CACHE", str(tmp_path / "cache"))
    return FeatureCache(tmp_path / "cache")


def recipe(*, epochs: int = 3, augment: bool = False, **cache) -> kinfold.Recipe:
    return kinfold.Recipe(
        batches={"batch_size": 12, "images_per_class": 3, "augment": augment},
        optimizer={"learning_rate": 1e-3, "proxies": {"learning_rate": 1e-2}},
        train={"epochs": epochs, "log_every": 1},
        cache=cache,
    )


def trained(table, folder: Path, settings: kinfold.Recipe, *, part: str | None = "trunk", watch=None, **model) -> kinfold.Trained:
    embedder = kinfold.Embedder("convnet", dim=16, size=24, seed=3, **model).freeze(part)
    objective = kinfold.Proxies(proxy_anchor, table.of_split("train").n_classes, 16)
    return kinfold.fit(table, embedder, objective, run=folder, recipe=settings, watch=watch)


def losses(run: kinfold.Trained) -> list[dict]:
    return [{name: value for name, value in row.items() if name not in UNTIMED} for row in run.run.rows()]


def assert_equal_up_to_rounding(one: kinfold.Trained, other: kinfold.Trained) -> None:
    for a, b in zip(losses(one), losses(other), strict=True):
        assert a == pytest.approx(b, rel=2e-3, abs=1e-5)
    for name, tensor in one.embedder.state_dict().items():
        assert torch.allclose(tensor.float(), other.embedder.state_dict()[name].float(), atol=2e-3), name


@pytest.mark.parametrize(("part", "pool"), [("trunk", "avg"), ("trunk", "gem"), ("blocks.1", "avg")])
def test_kept_and_computed_anew_without_augmentation_are_equal(table, tmp_path, cache, part, pool):
    kept = trained(table, tmp_path / "kept", recipe(), part=part, pool=pool)
    assert cache.entries()
    anew = trained(table, tmp_path / "anew", recipe(use=False), part=part, pool=pool)
    assert_equal_up_to_rounding(kept, anew)
    test = table.of_split("test")
    with_cache = embed_table(kept.embedder, test, cache=cache)
    without = embed_table(kept.embedder, test)
    assert torch.allclose(with_cache.embedding, without.embedding, atol=1e-4)
    assert torch.equal(with_cache.label, without.label) and torch.equal(with_cache.item, without.item)


@pytest.mark.parametrize("part", ["trunk", "blocks.1"])
def test_a_given_number_of_random_views_is_the_same_kept_or_not(table, tmp_path, cache, part):
    kept = trained(table, tmp_path / "kept", recipe(epochs=4, augment=True, views=2), part=part)
    anew = trained(table, tmp_path / "anew", recipe(epochs=4, augment=True, views=2, use=False), part=part)
    assert_equal_up_to_rounding(kept, anew)
    # As many views as epochs: what fresh views of seed 0 show.
    many = trained(table, tmp_path / "many", recipe(epochs=2, augment=True, views=2), part=part)
    fresh = trained(table, tmp_path / "fresh", recipe(epochs=2, augment=True), part=part)
    assert_equal_up_to_rounding(many, fresh)


def test_fresh_views_are_not_kept(table, tmp_path, cache):
    trained(table, tmp_path / "run", recipe(augment=True))
    assert not cache.entries()


def test_without_a_frozen_part_nothing_is_kept(table, tmp_path, cache):
    embedder = kinfold.Embedder("convnet", dim=16, size=24)
    objective = kinfold.Proxies(proxy_anchor, 6, 16)
    kinfold.fit(table, embedder, objective, run=tmp_path / "run", recipe=recipe(), cache=cache)
    assert not cache.entries()


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_in_half_precision_kept_features_are_the_same(table, cache, precision):
    embedder = kinfold.Embedder("convnet", dim=16, size=24).freeze("trunk")
    embed_table(embedder, table, cache=cache, precision=precision)
    stored = embed_table(embedder, table, cache=cache)
    assert torch.allclose(stored.feature, embed_table(embedder, table).feature, atol=1e-5)


def test_two_runs_share_what_is_kept(table, tmp_path, cache):
    trained(table, tmp_path / "one", recipe())
    before = {file: file.stat().st_mtime_ns for file in cache.folder.glob("*/*.npy")}
    trained(table, tmp_path / "two", recipe(epochs=1))
    assert {file: file.stat().st_mtime_ns for file in cache.folder.glob("*/*.npy")} == before


def test_a_changed_file_is_read_again(tiny_photos, tmp_path, cache):
    folder = tmp_path / "photos"
    shutil.copytree(tiny_photos, folder)
    table = kinfold.read_table(folder)
    embedder = kinfold.Embedder("convnet", dim=16, size=24).freeze("trunk")
    before = embed_table(embedder, table, cache=cache)
    stat = (folder / "0_0.png").stat()
    shutil.copy(folder / "5_5.png", folder / "0_0.png")
    os.utime(folder / "0_0.png", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    after = embed_table(embedder, table, cache=cache)
    row = table.path.index("0_0.png")
    assert torch.equal(after.embedding[row], before.embedding[table.path.index("5_5.png")])
    others = torch.arange(len(table)) != row
    assert torch.equal(after.embedding[others], before.embedding[others])


def test_another_size_is_not_served(table, cache):
    small = kinfold.Embedder("convnet", None, size=24, seed=3).freeze("trunk")
    large = kinfold.Embedder("convnet", None, size=32, seed=3).freeze("trunk")
    assert not torch.allclose(embed_table(small, table, cache=cache).feature, embed_table(large, table, cache=cache).feature)
    assert torch.allclose(embed_table(large, table, cache=cache).feature, embed_table(large, table).feature, atol=1e-5)


def test_a_broken_image_stops_or_is_skipped_as_without_a_cache(tiny_photos, tmp_path, cache):
    folder = tmp_path / "photos"
    shutil.copytree(tiny_photos, folder)
    (folder / "1_1.png").write_bytes(b"no image")
    (folder / "2_2.png").unlink()
    table = kinfold.read_table(folder)
    with pytest.raises(DataError, match=r"[12]_[12]\.png"):
        trained(table, tmp_path / "stop", recipe())
    skipping = recipe().model_copy(update={"batches": recipe().batches.model_copy(update={"on_broken": "skip"})})
    anew = skipping.model_copy(update={"cache": skipping.cache.model_copy(update={"use": False})})
    kept, images = trained(table, tmp_path / "kept", skipping), trained(table, tmp_path / "anew", anew)
    assert_equal_up_to_rounding(kept, images)
    assert kept.run.metrics()["left_out"].keys() == images.run.metrics()["left_out"].keys()
    assert len(kept.run.metrics()["left_out"]) == 2


class StopAt(NoWatch):
    def __init__(self, step: int):
        self.step = step

    def tick(self, tick) -> None:
        if tick.progress.step == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize("second", [True, False], ids=["kept again", "then from images"])
def test_an_interrupted_run_goes_on_from_kept_values_or_images(table, tmp_path, cache, second):
    whole = trained(table, tmp_path / "whole", recipe())
    with pytest.raises(kinfold.Interrupted):
        trained(table, tmp_path / "run", recipe(), watch=StopAt(5))
    resumed = trained(table, tmp_path / "run", recipe(use=second))
    if second:
        assert losses(resumed) == losses(whole)
        assert all(torch.equal(a, b) for a, b in zip(resumed.embedder.parameters(), whole.embedder.parameters(), strict=True))
    assert_equal_up_to_rounding(whole, resumed)


def test_a_run_does_not_go_on_with_another_frozen_part(table, tmp_path, cache):
    with pytest.raises(kinfold.Interrupted):
        trained(table, tmp_path / "run", recipe(), watch=StopAt(5))
    with pytest.raises(ConfigError, match=r"embedder\.frozen"):
        trained(table, tmp_path / "run", recipe(), part="blocks.1")
    embedder = kinfold.Embedder("convnet", dim=16, size=24, seed=4).freeze("trunk")
    objective = kinfold.Proxies(proxy_anchor, table.of_split("train").n_classes, 16)
    with pytest.raises(ConfigError, match=r"embedder\.frozen\.weights"):
        kinfold.fit(table, embedder, objective, run=tmp_path / "run", recipe=recipe())


def test_the_finished_model_holds_the_frozen_part_too(table, tmp_path, cache):
    run = trained(table, tmp_path / "run", recipe())
    loaded = kinfold.Embedder.from_pretrained(run.run.model)
    assert loaded.fingerprint() == run.embedder.fingerprint() and loaded.frozen is None
    kept = torch.load(run.run.last, weights_only=True)["model"]
    assert set(kept) == {"head.linear.weight", "head.linear.bias"}


def test_held_out_classes_choose_the_epoch_with_a_frozen_trunk(table, tmp_path, cache):
    held = kinfold.hold_out_classes(table, every=2)
    run = trained(held, tmp_path / "run", recipe())
    assert len(run.progress.evaluations) == 3
    best = torch.load(run.run.best, weights_only=True)["model"]
    assert torch.equal(run.embedder.head.linear.weight, best["head.linear.weight"])


@pytest.mark.parametrize("kind", ["pca", "whitening"])
def test_a_head_starts_from_the_components_of_the_training_features(table, cache, kind):
    embedder = kinfold.Embedder("convnet", dim=16, size=24, layer_norm=True)
    train = table.of_split("train")
    start_head(embedder, train, kind, cache=cache)
    again = kinfold.Embedder("convnet", dim=16, size=24, layer_norm=True)
    start_head(again, train, kind)
    assert torch.allclose(embedder.head.linear.weight, again.head.linear.weight, atol=1e-3)
    x = embed_table(embedder, train).embedding
    assert torch.allclose(x.mean(dim=0), torch.zeros(16), atol=1e-3)
    covariance = x.T @ x / len(x)
    assert torch.allclose(covariance, torch.diag(covariance.diag()), atol=1e-3 * float(covariance.max()))
    if kind == "whitening":
        assert torch.allclose(covariance.diag(), torch.ones(16), atol=1e-2)


def test_with_all_components_neighbours_are_those_of_the_centred_features(table):
    embedder = kinfold.Embedder("convnet", dim=128, size=24)
    start_head(embedder, table)
    found = embed_table(embedder, table)
    centred = found.feature - found.feature.mean(dim=0)
    a = torch.nn.functional.normalize(found.embedding) @ torch.nn.functional.normalize(found.embedding).T
    b = torch.nn.functional.normalize(centred) @ torch.nn.functional.normalize(centred).T
    assert torch.allclose(a, b, atol=1e-4)


def test_a_head_start_needs_a_head_and_a_known_kind(table):
    with pytest.raises(ConfigError, match="needs a linear head"):
        start_head(kinfold.Embedder("convnet", None, size=24), table)
    with pytest.raises(ConfigError, match="did you mean `pca`"):
        start_head(kinfold.Embedder("convnet", 4, size=24), table, "pcaa")


def test_no_epochs_measures_the_model_as_it_starts(table, tmp_path, cache):
    run = trained(table, tmp_path / "run", recipe(epochs=0))
    fresh = kinfold.Embedder("convnet", dim=16, size=24, seed=3)
    assert torch.equal(run.embedder.head.linear.weight, fresh.head.linear.weight)
    assert kinfold.Embedder.from_pretrained(run.run.model).dim == 16 and run.progress.is_done
