"""The loader: equal bits for any workers, exact resuming, broken files, views."""

import os
import random
import sys

import numpy as np
import pytest
import torch

from kinfold.data.datasets import ImageFiles
from kinfold.data.loader import ImageLoader
from kinfold.data.samplers import MPerClassSampler, SequentialBatchSampler
from kinfold.data.transforms import train_transform
from kinfold.errors import ConfigError, DataError, ShapeError
from kinfold.images.preprocessing import Preprocessing

N = 12
LABEL = torch.arange(N) // 3
ITEM = torch.arange(N) + 100
PREPROCESSING = Preprocessing(size=8, crop_ratio=1.0)


@pytest.fixture
def broken_paths(paths, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(paths[0].read_bytes()[:60])
    return [*paths[:4], bad, *paths[5:]]


def loader_of(paths, **settings):
    settings.setdefault("sampler", MPerClassSampler(LABEL, m=2, batch_size=4))
    settings.setdefault("transform", train_transform(PREPROCESSING, color_jitter=0.3))
    return ImageLoader(ImageFiles(paths), LABEL, ITEM, **settings)


def in_order(paths, batch_size=4, **settings):
    return loader_of(paths, sampler=SequentialBatchSampler(N, batch_size), **settings)


def same(one, other):
    one, other = list(one), list(other)
    return len(one) == len(other) and all(
        torch.equal(getattr(a, name), getattr(b, name))
        for a, b in zip(one, other, strict=True)
        for name in ("image", "label", "item", "view")
    )


def three_generators(image):
    """A transform that uses all three generators."""
    noise = torch.tensor([torch.rand(()).item(), random.random(), np.random.random()])
    return noise.float().view(3, 1, 1) + torch.zeros(3, len(image.getbands()), 1)


def heavy_modules(_image):
    """Tell a batch which heavy modules its worker has imported."""
    found = [float(name in sys.modules) for name in ("timm", "matplotlib", "pandas", "sklearn", "lightning_fabric")]
    return torch.full((3, 8, 8), sum(found))


def test_a_batch_is_what_the_rows_say(paths):
    first, *_ = in_order(paths, transform=PREPROCESSING).epoch(0)
    assert first.label.tolist() == [0, 0, 0, 1]
    assert first.item.tolist() == [100, 101, 102, 103]
    assert first.view.tolist() == [0] * 4
    assert torch.equal(first.image, torch.stack([PREPROCESSING(path) for path in paths[:4]]))


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_change_no_bit(paths, workers):
    alone, helped = loader_of(paths), loader_of(paths, workers=workers)
    for epoch in (0, 1):
        assert same(alone.epoch(epoch), helped.epoch(epoch))
    assert same(alone.epoch(1, start=2), helped.epoch(1, start=2))
    helped.close()


def test_fresh_processes_change_no_bit_and_import_nothing_heavy(paths):
    transform = train_transform(PREPROCESSING)
    helped = loader_of(paths, transform=[transform, heavy_modules], workers=1, start_method="spawn")
    for epoch in (0, 1):
        for one, two in zip(loader_of(paths, transform=transform).epoch(epoch), helped.epoch(epoch), strict=True):
            assert torch.equal(one.item, two.item[:4])
            assert torch.equal(one.image, two.image[:4])
            assert not two.image[4:].any()
    helped.close()


def test_workers_live_across_epochs(paths):
    loader = in_order(paths, transform=process_number, workers=1)
    pids = {float(batch.image.max()) for epoch in range(3) for batch in loader.epoch(epoch)}
    assert len(pids) == 1
    assert pids != {float(os.getpid())}
    loader.close()


def process_number(_image):
    """Tell a batch which process made it."""
    return torch.full((1, 1, 1), float(os.getpid()), dtype=torch.float64)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_epoch_left_early_and_begun_at_its_position_goes_on_exactly(paths, workers):
    loader = loader_of(paths, workers=workers)
    assert len(loader) == 3
    for _ in loader.epoch(4):
        break
    assert loader.position == 1
    rest = list(loader.epoch(4, start=loader.position))
    assert same(rest, list(loader_of(paths).epoch(4))[1:])
    assert loader.position == 3
    loader.close()


def test_augmentation_depends_on_seed_epoch_item_and_view_only(paths):
    def by_item(epoch=0, seed=0, batch_size=4):
        batches = in_order(paths, batch_size, transform=[three_generators] * 2, seed=seed).epoch(epoch)
        return {
            (int(item), int(view)): image
            for batch in batches
            for image, item, view in zip(batch.image, batch.item, batch.view, strict=True)
        }

    one, regrouped = by_item(), by_item(batch_size=3)
    assert all(torch.equal(one[key], regrouped[key]) for key in one)
    runs = one, by_item(epoch=1), by_item(seed=1)
    everything = [number for run in runs for image in run.values() for number in image[:, 0, 0].tolist()]
    assert len(set(everything)) == 3 * 3 * 2 * N


def test_an_image_keeps_its_augmentation_when_its_row_moves(paths):
    order = torch.arange(N).flip(0)
    sampler = SequentialBatchSampler(N, N)
    moved = ImageLoader(ImageFiles([paths[i] for i in order]), LABEL, ITEM[order], transform=three_generators, sampler=sampler)
    (one,), (other,) = in_order(paths, N, transform=three_generators).epoch(0), moved.epoch(0)
    assert torch.equal(one.image, other.image[order])


@pytest.mark.parametrize("workers", [0, 1])
def test_training_goes_on_with_its_own_randomness(paths, workers):
    random.seed(7)
    np.random.seed(7)
    expected = torch.rand(3), random.random(), np.random.random()
    torch.manual_seed(0)
    random.seed(7)
    np.random.seed(7)
    loader = loader_of(paths, transform=three_generators, workers=workers)
    list(loader.epoch(0))
    loader.close()
    assert torch.equal(torch.rand(3), expected[0])
    assert (random.random(), np.random.random()) == expected[1:]


def test_views_follow_one_another_in_the_batch(paths):
    loader = in_order(paths, transform=[PREPROCESSING, train_transform(PREPROCESSING), lambda image: -PREPROCESSING(image)])
    batch = next(loader.epoch(0))
    assert batch.view.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert batch.item.tolist() == [100, 101, 102, 103] * 3
    assert batch.label.tolist() == [0, 0, 0, 1] * 3
    assert torch.equal(batch.image[8:], -batch.image[:4])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_file_stops_with_its_name_and_without_a_traceback(broken_paths, workers):
    loader = in_order(broken_paths, workers=workers)
    batches = loader.epoch(0)
    next(batches)
    with pytest.raises(DataError, match=r"bad\.png") as error:
        next(batches)
    assert "Traceback" not in str(error.value)
    assert "on_broken" in str(error.value)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_broken_file_can_be_skipped_and_is_counted(broken_paths, workers, caplog):
    loader = in_order(broken_paths, workers=workers, on_broken="skip", transform=[PREPROCESSING] * 2)
    for _ in range(2):
        items = [batch.item.tolist() for batch in loader.epoch(0)]
        assert items == [[100, 101, 102, 103] * 2, [105, 106, 107] * 2, [108, 109, 110, 111] * 2]
    assert list(loader.broken) == [str(broken_paths[4])]
    assert "bad.png" in loader.broken[str(broken_paths[4])]
    assert caplog.text.count("left out") == 1
    loader.close()


def test_a_batch_that_becomes_empty_is_left_out_but_keeps_its_number(broken_paths):
    loader = in_order(broken_paths, 1, on_broken="skip")
    positions = [(batch.item.item(), loader.position) for batch in loader.epoch(0)]
    assert positions == [(100 + row, row + 1) for row in range(N) if row != 4]


def test_an_epoch_of_broken_files_is_an_error(tmp_path):
    loader = in_order([tmp_path / "missing.png"] * N, on_broken="skip")
    with pytest.raises(DataError, match=r"no image of epoch 0 can be read.*missing\.png"):
        list(loader.epoch(0))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("transform", "words"),
    [
        (lambda image: image, "returned a Image"),
        (lambda image: torch.zeros(3, 2, 2, dtype=torch.uint8), r"torch.uint8 \(3, 2, 2\)"),
        (lambda image: torch.zeros(3, image.getpixel((0, 0))[0] + 1, 2), r"shapes \(3, .*bring all to one size"),
    ],
)
def test_transforms_whose_output_does_not_fit_are_explained(paths, workers, transform, words):
    with pytest.raises(ConfigError, match=words) as error:
        list(loader_of(paths, transform=transform, workers=workers).epoch(0))
    assert "Traceback" not in str(error.value)


def test_a_lambda_cannot_be_sent_to_fresh_processes(paths):
    loader = loader_of(paths, transform=lambda image: image, workers=1, start_method="spawn")
    with pytest.raises(ConfigError, match="define it at the top level of a module"):
        list(loader.epoch(0))


def test_one_epoch_is_read_at_a_time(paths):
    loader = loader_of(paths)
    first, second = loader.epoch(0), loader.epoch(1)
    next(first)
    next(second)
    with pytest.raises(ConfigError, match="one epoch at a time"):
        next(first)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"on_broken": "ignore"}, "on_broken = 'ignore'"),
        ({"workers": -1}, "workers = -1"),
        ({"sampler": SequentialBatchSampler(5, 2)}, "5 rows, there are 12"),
    ],
)
def test_settings_that_do_not_fit_are_refused(paths, change, words):
    with pytest.raises(ValueError, match=words):
        loader_of(paths, **change)
    with pytest.raises(ShapeError, match=r"`label` has shape \(2,\)"):
        ImageLoader(ImageFiles(paths), LABEL[:2], transform=PREPROCESSING, sampler=SequentialBatchSampler(N, 2))
    with pytest.raises(ConfigError, match="start = 9"):
        loader_of(paths).epoch(0, start=9)
