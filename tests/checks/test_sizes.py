"""The estimate of memory and disk, against what a run really writes and remembers."""

from pathlib import Path

import pytest

import kinfold
from kinfold.checks.cost import Afterwards, Amounts
from kinfold.checks.memory import measured_memory
from kinfold.checks.sizes import disk_finding, memory_finding, sizes_of, weights_of
from tests.checks.test_dry_step import rehearsed
from tests.checks.tiny import embedder, proxies, recipe


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


def sized(table, model, made):
    rehearsal, batch = rehearsed(table, model, proxies(table), made)
    weights = weights_of(rehearsal.embedder, rehearsal.objective)
    with measured_memory(rehearsal.device, weights) as memory:
        rehearsal.step(batch)
    return sizes_of(rehearsal, made, memory, image=batch.image, fed=batch.image), memory


def within(found, actual, share=0.1):
    """The files have names and headers besides the numbers."""
    return 0 <= actual - found <= share * actual + 20_000


def folder_size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def test_memory_is_that_of_weights_gradients_and_two_moments(table):
    model = embedder()
    sizes, _ = sized(table, model, recipe())
    n_weights = sum(p.numel() for p in model.parameters()) + 6 * 16
    n_buffers = sum(b.numel() * b.element_size() for b in model.buffers())
    assert sizes.gradients == 4 * n_weights
    assert sizes.weights == 4 * n_weights + n_buffers
    assert 8 * n_weights <= sizes.optimizer <= 8 * n_weights + 4 * 100, "two moments, and a count for each parameter"
    assert sizes.images == 4 * 12 * 3 * 24 * 24
    assert sizes.activations > sizes.images, "the images are kept as the first layer's input"
    assert sizes.training == sizes.weights + sizes.gradients + sizes.optimizer + sizes.images + sizes.activations


def test_plain_sgd_remembers_nothing(table):
    sizes, _ = sized(table, embedder(), recipe(optimizer={"kind": "sgd", "momentum": 0.0}))
    assert sizes.optimizer == 0


def test_workers_read_two_batches_ahead_each(table):
    alone, helped = (sized(table, embedder(), recipe(batches={"workers": workers}))[0] for workers in (0, 2))
    assert helped.images == 5 * alone.images


@pytest.mark.parametrize("frozen", [None, "trunk"])
def test_disk_is_what_a_run_writes(table, tmp_path, frozen):
    made = recipe(cache={"views": 2, "folder": str(tmp_path / "cache")}) if frozen else recipe()
    sizes, _ = sized(table, embedder().freeze(frozen), made)
    trained = kinfold.fit(table, embedder().freeze(frozen), proxies(table), run=tmp_path / "run", recipe=made)
    assert within(sizes.checkpoint, trained.run.last.stat().st_size)
    assert within(sizes.model, folder_size(trained.run.model))
    if frozen:
        assert within(sizes.value * 2 * 48, folder_size(tmp_path / "cache"))
        assert sizes.checkpoint < 0.2 * sizes.model


def test_half_the_cache_where_values_are_halved(table):
    whole, half = (sized(table, embedder().freeze(), recipe(cache={"views": 1, "half": half}))[0] for half in (False, True))
    assert whole.value == 2 * half.value == 4 * 128


def test_the_notes_add_up(table):
    made = recipe()
    sizes, memory = sized(table, embedder(), made)
    afterwards = Afterwards(1_000_000, "2GB", keeps_embeddings=True)
    found = memory_finding(sizes, memory, afterwards)
    assert found.severity == "note" and "up to 2.0 GB (evaluation.memory)" in found.message
    without, kept = (disk_finding(sizes, made, Amounts(4, 48, n_val, afterwards=afterwards)) for n_val in (0, 8))
    assert "embeddings 64 MB" in kept.message
    assert "checkpoints 2.9 MB" in without.message and "checkpoints 5.8 MB" in kept.message, "the last, and the best"
    assert "embeddings" not in disk_finding(sizes, made, Amounts(4, 48)).message
