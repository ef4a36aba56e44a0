"""A key of what an image is, whatever it is called."""

import numpy as np
import pytest
from PIL import Image

from kinfold.data.content import content_key
from kinfold.data.datasets import DatasetImages, DatasetRows, ImageFiles
from kinfold.data.table import Box


@pytest.fixture
def picture(tmp_path):
    file = tmp_path / "a.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(file)
    return file


def test_a_copy_under_another_name_has_the_same_key(picture):
    copy = picture.with_name("b.png")
    copy.write_bytes(picture.read_bytes())
    assert content_key(ImageFiles([picture]), 0) == content_key(ImageFiles(["none.png", copy]), 1)


def test_a_file_changed_in_place_has_another_key_even_with_its_old_time_and_size(picture):
    before, stat = content_key(ImageFiles([picture]), 0), picture.stat()
    content = bytearray(picture.read_bytes())
    content[-1] ^= 1
    picture.write_bytes(content)
    import os

    os.utime(picture, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert picture.stat().st_size == stat.st_size
    assert content_key(ImageFiles([picture]), 0) != before


def test_the_box_and_the_extra_numbers_belong_to_the_key(picture):
    whole, cut = ImageFiles([picture]), ImageFiles([picture], boxes=[Box(0, 4, 0, 8)])
    keys = {
        content_key(whole, 0),
        content_key(cut, 0),
        content_key(whole, 0, 1),
        content_key(whole, 0, 0, 1),
        content_key(whole, 0, 1, 0),
    }
    assert len(keys) == 5


def test_images_of_a_data_set_are_known_by_their_pixels(picture):
    with Image.open(picture) as image:
        rows = [(image.copy(), "a"), (image.rotate(90), "b"), (image.copy(), "c")]
    images = DatasetRows(DatasetImages(rows), (2, 1, 0))
    assert content_key(images, 0) == content_key(images, 2) != content_key(images, 1)
