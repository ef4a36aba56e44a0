"""Images as users have them → batches."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kinfold.errors import ConfigError, DataError, ShapeError
from kinfold.images.preprocessing import Preprocessing
from kinfold.models.image_batches import image_batches

HALF = Preprocessing(size=8, resize="squash", mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))


def tensor_of(images, batch_size=3):
    return torch.cat(list(image_batches(images, HALF, batch_size=batch_size)))


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "red.png"
    Image.new("RGB", (10, 12), (255, 0, 0)).save(place)
    return place


def test_every_kind_of_source_gives_the_same_picture(path):
    encoded, picture = path.read_bytes(), Image.open(path)
    array = np.asarray(picture)
    expected = torch.tensor([1.0, -1.0, -1.0]).view(1, 3, 1, 1).expand(1, 3, 8, 8)
    for one in (str(path), Path(path), encoded, io.BytesIO(encoded), picture, array):
        torch.testing.assert_close(tensor_of(one), expected)
    for several in (
        [str(path), array],
        (path, picture),
        np.stack([array, array]),
        iter([encoded, encoded]),
        np.array([str(path)] * 2),
    ):
        torch.testing.assert_close(tensor_of(several), expected.expand(2, 3, 8, 8))


def test_grey_and_transparent_images_have_three_channels():
    grey = np.full((9, 7), 255, np.uint8)
    clear = np.zeros((9, 7, 4), np.uint8)
    for images in ([grey, clear], [grey[:, :, None], Image.fromarray(clear)]):
        assert tensor_of(images).shape == (2, 3, 8, 8)
    torch.testing.assert_close(tensor_of(grey), torch.ones(1, 3, 8, 8))


def test_batches_keep_the_order_and_the_last_one_is_smaller():
    images = [np.full((8, 8), 10 * i, np.uint8) for i in range(7)]
    batches = list(image_batches(images, HALF, batch_size=3))
    assert [len(batch) for batch in batches] == [3, 3, 1]
    shade = (torch.cat(batches)[:, 0, 0, 0] + 1) * 127.5
    torch.testing.assert_close(shade, torch.arange(7.0) * 10)


def test_a_tensor_is_taken_as_preprocessed():
    images = torch.randn(5, 3, 9, 9)
    assert torch.equal(tensor_of(images, batch_size=2), images)
    assert torch.equal(tensor_of(images[0]), images[:1])


def test_no_images_give_no_batches():
    assert list(image_batches([], HALF, batch_size=2)) == []
    assert list(image_batches(torch.empty(0, 3, 8, 8), HALF, batch_size=2)) == []


def test_only_one_batch_is_decoded_ahead_of_its_use(path):
    batches = image_batches([path, path, path.with_name("missing.png")], HALF, batch_size=2)
    assert len(next(batches)) == 2
    with pytest.raises(DataError, match=r"image 3 of 3: .*missing.png"):
        next(batches)


def test_a_broken_image_is_named(path):
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match=r"image 1 of 1: .*red.png"):
        tensor_of([path])


@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.zeros(2, 3, 8, 8, dtype=torch.uint8), DataError, "counts as preprocessed"),
        (torch.zeros(2, 8, 8, 3), ShapeError, r"\(2, 8, 8, 3\)"),
        (torch.zeros(8, 8), ShapeError, r"\(8, 8\)"),
        (np.zeros((2, 8, 8), np.uint8), ShapeError, r"\(2, 8, 8\)"),
        (np.zeros((1, 2, 8, 8, 3), np.uint8), ShapeError, "several are"),
        (7, DataError, "type int"),
        ([7], DataError, "image 1 of 1"),
        ([np.zeros((8, 8, 3), np.float32)], DataError, "image 1 of 1"),
    ],
)
def test_what_is_no_image_is_refused(images, error, message):
    with pytest.raises(error, match=message):
        tensor_of(images)


@pytest.mark.parametrize("batch_size", [0, -1, 2.0, True])
def test_a_batch_holds_at_least_one_image(batch_size):
    with pytest.raises(ConfigError, match="batch_size"):
        tensor_of([], batch_size)
