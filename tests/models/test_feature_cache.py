"""Kept features: never stale, never lost, shared."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import kinfold.models.feature_cache as module
import kinfold.models.shards as shards_module
from kinfold.errors import ConfigError
from kinfold.models.embedder import Embedder
from kinfold.models.feature_cache import FeatureCache, cache_folder
from kinfold.models.frozen import Front

VIEW = {"size": 16}


def front(seed: int = 0, part: str = "trunk") -> Front:
    return Front(Embedder("convnet", 4, size=16, seed=seed).eval(), part)


def key(number: int) -> bytes:
    return number.to_bytes(16, "little")


class Images:
    """Pictures by number, with a count of how many were read; those in `broken` cannot be."""

    def __init__(self, n: int, *, broken: tuple[int, ...] = (), first: int = 0):
        self.keys = [key(first + number) for number in range(n)]
        self.broken, self.n_read, self.first = broken, 0, first

    def __call__(self, places):
        for start in range(0, len(places), 64):
            good = [place for place in places[start : start + 64] if place not in self.broken]
            self.n_read += len(good)
            yield good, torch.stack([self.image(place) for place in good])

    def image(self, place: int) -> torch.Tensor:
        return torch.randn(3, 16, 16, generator=torch.Generator().manual_seed(self.first + place))


def values(cache: FeatureCache, images: Images, *, part: Front | None = None, view=VIEW) -> np.ndarray:
    stored, rows = cache.stored(part or front(), view, images.keys, images)
    return stored.take(np.arange(len(rows)))


def test_features_are_those_of_the_part_and_are_read_once(tmp_path):
    images, cache = Images(70), FeatureCache(tmp_path)
    part = front()
    with torch.no_grad():
        truth = part(torch.stack([images.image(place) for place in range(70)])).numpy()
    assert np.allclose(values(cache, images), truth, atol=1e-5)
    assert images.n_read == 70
    assert np.array_equal(values(FeatureCache(tmp_path), images), values(cache, images))
    assert images.n_read == 70


def test_only_what_is_new_is_read_and_values_do_not_depend_on_the_history(tmp_path):
    few, all_of_them = Images(10), Images(100)
    values(FeatureCache(tmp_path / "a"), few)
    grown = values(FeatureCache(tmp_path / "a"), all_of_them)
    assert all_of_them.n_read == 90
    assert np.array_equal(grown, values(FeatureCache(tmp_path / "b"), Images(100)))


def changed_weight() -> Front:
    part = front()
    with torch.no_grad():
        next(part.parameters())[0, 0, 0, 0] += 1e-4
    return part


@pytest.mark.parametrize(
    ("part", "view", "half"),
    [
        (changed_weight, VIEW, False),
        (lambda: front(part="blocks.1"), VIEW, False),
        (lambda: front(seed=1), VIEW, False),
        (front, {"size": 17}, False),
        (front, VIEW, True),
    ],
    ids=["a weight", "another block", "another seed", "another crop", "half precision"],
)
def test_a_change_of_anything_is_never_served(tmp_path, part, view, half):
    values(FeatureCache(tmp_path), Images(5))
    images = Images(5)
    values(FeatureCache(tmp_path, half=half), images, part=part(), view=view)
    assert images.n_read == 5


def test_changed_code_of_the_network_is_never_served(tmp_path):
    before = values(FeatureCache(tmp_path), Images(5))
    images, part = Images(5), front()
    part.steps.append(torch.nn.Tanh())  # no weight changes
    part.fingerprint = front().fingerprint
    assert not np.array_equal(values(FeatureCache(tmp_path), images, part=part), before)
    assert images.n_read == 5


def test_what_is_kept_is_in_full_precision_whatever_the_caller_computes_in(tmp_path):
    truth = values(FeatureCache(tmp_path / "a"), Images(5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert np.array_equal(values(FeatureCache(tmp_path / "b"), Images(5)), truth)


def test_images_that_cannot_be_read_are_told_by_their_absence(tmp_path):
    cache, images = FeatureCache(tmp_path), Images(6, broken=(1, 4))
    stored, rows = cache.stored(front(), VIEW, images.keys, images)
    assert rows == [0, 2, 3, 5] and len(stored) == 4
    images.broken = ()
    assert cache.stored(front(), VIEW, images.keys, images)[1] == list(range(6))


def test_equal_images_are_computed_once(tmp_path):
    images = Images(4)
    images.keys[3] = images.keys[0]
    found = values(FeatureCache(tmp_path), images)
    assert images.n_read == 3 and np.array_equal(found[0], found[3])


def test_a_full_disk_costs_nothing_but_the_keeping(tmp_path, monkeypatch, caplog):
    def full(file: Path, array: np.ndarray) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "SHARD_BYTES", 1)
    monkeypatch.setattr(shards_module, "_write", full)
    truth = values(FeatureCache(tmp_path / "b"), Images(5))
    assert np.array_equal(values(FeatureCache(tmp_path / "a"), Images(130))[:5], truth)
    assert [record.message for record in caplog.records].count(
        "the feature cache cannot be written (No space left on device): features stay in memory for this run"
    ) == 2  # once for each of the two


def test_a_folder_that_cannot_be_written_does_not_stop_training(tmp_path, monkeypatch):
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    truth = values(FeatureCache(tmp_path / "b"), Images(5))
    monkeypatch.setattr(module, "write_text", denied)
    monkeypatch.setattr(shards_module, "_write", denied)
    assert np.array_equal(values(FeatureCache(tmp_path / "a"), Images(5)), truth)


def test_values_too_large_for_half_precision_are_refused(tmp_path):
    part = front()
    with torch.no_grad():
        for p in part.parameters():
            p.mul_(1e4)
    with pytest.raises(ConfigError, match=r"`cache.half` cannot keep"):
        values(FeatureCache(tmp_path, half=True), Images(3), part=part)


def fill(folder: str, n: int, first: int, pause: float) -> None:
    torch.set_num_threads(1)
    module.SHARD_BYTES = 1
    images = Images(n, first=first)

    def slowly(places):
        for batch in images(places):
            time.sleep(pause)
            yield batch

    FeatureCache(Path(folder)).stored(front(), VIEW, images.keys, slowly)
    Path(folder, f"read-{os.getpid()}").write_text(str(images.n_read))


def started(*args) -> multiprocessing.Process:
    process = multiprocessing.get_context("spawn").Process(target=fill, args=args)
    process.start()
    return process


def test_two_processes_compute_each_image_once_between_them(tmp_path):
    both = [started(str(tmp_path), 200, 0, 0.05) for _ in range(2)]
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert sorted(int(file.read_text()) for file in tmp_path.glob("read-*")) == [0, 200]


def test_a_killed_writer_loses_nothing_but_time(tmp_path):
    process = started(str(tmp_path), 64 * 20, 0, 0.2)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("*/*.keys.npy"))) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    images = Images(64 * 20)
    found = values(FeatureCache(tmp_path), images)
    assert images.n_read <= 64 * 18
    assert np.array_equal(found, values(FeatureCache(tmp_path / "anew"), Images(64 * 20)))


def test_ctrl_c_keeps_what_was_computed_so_far(tmp_path):
    images = Images(150)

    def interrupted(places):
        for number, batch in enumerate(images(places)):
            if number == 2:
                raise KeyboardInterrupt
            yield batch

    with pytest.raises(KeyboardInterrupt):
        FeatureCache(tmp_path).stored(front(), VIEW, images.keys, interrupted)
    images.n_read = 0
    values(FeatureCache(tmp_path), images)
    assert images.n_read == 150 - 128


def test_what_was_computed_is_written_every_few_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARD_SECONDS", 0.0)
    values(FeatureCache(tmp_path), Images(150))
    assert len(list(tmp_path.glob("*/*.keys.npy"))) == 3


def test_what_is_kept_is_listed_and_cleared(tmp_path):
    cache = FeatureCache(tmp_path)
    values(cache, Images(5))
    values(cache, Images(3), part=front(part="blocks.1"))
    listed = cache.entries()
    assert {(entry["trunk"], entry["part"], entry["rows"]) for entry in listed} == {
        ("convnet", "trunk", 5),
        ("convnet", "blocks.1", 3),
    }
    assert all(entry["bytes"] > 0 for entry in listed)
    for entry in listed:
        cache.clear(entry["key"])
    assert not list(tmp_path.iterdir())


def test_the_folder_is_the_one_given_or_that_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("KINFOLD_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path and cache_folder("x") == Path("x")
    assert FeatureCache().folder == tmp_path and FeatureCache("x").folder == Path("x")
    monkeypatch.delenv("KINFOLD_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "kinfold"
