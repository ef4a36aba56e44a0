import random

import numpy as np
import pytest
import torch
from PIL import Image

from kinfold.checks.images import look_at_all
from kinfold.data.datasets import table_from_dataset
from kinfold.data.read import read_table
from kinfold.errors import ConfigError, DataError
from tests.checks.pictures import photo, plain_table

ORIENTATION = 0x0112


@pytest.fixture
def folder(tmp_path):
    photo(0).save(tmp_path / "0.png")
    photo(0).save(tmp_path / "1.bmp")
    photo(1).save(tmp_path / "2.png")
    (tmp_path / "3.png").write_bytes(b"")
    (tmp_path / "4.png").write_bytes((tmp_path / "0.png").read_bytes()[:400])
    Image.new("RGB", (3, 40), (9, 8, 7)).save(tmp_path / "5.png")
    return tmp_path


def table_of(folder, *names):
    return read_table({"path": names, "label": ["a"] * len(names)}, root=folder)


NAMES = ("0.png", "1.bmp", "2.png", "3.png", "4.png", "5.png", "missing.png")


def test_every_image_is_read_or_its_fault_is_kept(folder):
    found = look_at_all(table_of(folder, *NAMES))
    assert len(found) == 7
    assert sorted(found.fault) == [3, 4, 6]
    assert "is empty" in found.fault[3] and "is broken" in found.fault[4] and "does not exist" in found.fault[6]
    assert found.is_readable.tolist() == [True, True, True, False, False, True, False]
    assert found.is_blank.tolist() == [False] * 5 + [True, False]
    assert found.size.tolist() == [[120, 90], [120, 90], [120, 90], [0, 0], [0, 0], [3, 40], [0, 0]]
    assert np.array_equal(found.thumbnail[0], np.asarray(photo(0).resize((32, 32), Image.Resampling.BICUBIC)))
    assert found.digest[0] == found.digest[1] != found.digest[2]


def test_workers_change_nothing(folder):
    alone, helped = (look_at_all(table_of(folder, *NAMES * 1), workers=workers) for workers in (0, 2))
    assert alone.fault == helped.fault
    assert alone.digest == helped.digest
    for column in ("size", "thumbnail", "is_blank"):
        assert np.array_equal(getattr(alone, column), getattr(helped, column))


def test_equal_pixels_are_equal_whatever_the_metadata_and_the_turn(tmp_path):
    image = photo(2)
    image.save(tmp_path / "a.png")
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    image.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "b.png", exif=exif)
    image.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "c.png")
    digest = look_at_all(table_of(tmp_path, "a.png", "b.png", "c.png")).digest
    assert digest[0] == digest[1] != digest[2]


def test_pixels_of_another_shape_are_another_picture(tmp_path):
    pixels = np.asarray(photo(3, (40, 30)))
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(pixels.reshape(40, 30, 3)).save(tmp_path / "b.png")
    digest = look_at_all(table_of(tmp_path, "a.png", "b.png")).digest
    assert digest[0] != digest[1]


def test_of_a_row_with_a_box_only_the_box_counts(tmp_path):
    sheet = Image.new("RGB", (240, 90))
    for column in range(2):
        sheet.paste(photo(4), (120 * column, 0))
    sheet.save(tmp_path / "0.png")
    photo(4).save(tmp_path / "1.png")
    sides = {"x_1": [0, 120, None], "x_2": [120, 240, None], "y_1": [0, 0, None], "y_2": [90, 90, None]}
    table = read_table({"path": ["0.png", "0.png", "1.png"], "label": ["a"] * 3, **sides}, root=tmp_path)
    found = look_at_all(table)
    assert found.digest[0] == found.digest[1] == found.digest[2]
    outside = read_table({"path": ["1.png"], "label": ["a"], "x_1": [0], "x_2": [121], "y_1": [0], "y_2": [90]}, root=tmp_path)
    assert "reaches outside" in look_at_all(outside).fault[0]


def test_a_data_set_is_looked_at_by_item():
    images = [photo(5), photo(6).convert("L"), photo(5)]
    found = look_at_all(table_from_dataset([(image, "a") for image in images]).subset([2, 1]))
    whole = look_at_all(table_from_dataset([(image, "a") for image in images]))
    assert found.digest == (whole.digest[2], whole.digest[1])
    assert whole.digest[0] == whole.digest[2] != whole.digest[1]


def test_a_data_set_of_tensors_is_refused_at_once():
    with pytest.raises(DataError, match="is a tensor: give the data set without its transform"):
        look_at_all(table_from_dataset([(torch.zeros(3, 8, 8), "a")]))


def test_an_empty_table_has_nothing_to_look_at():
    assert len(look_at_all(plain_table(["a"]).subset([]))) == 0


def test_progress_ends_with_all_images(folder):
    told = []
    look_at_all(table_of(folder, *NAMES), progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (7, 7)


def test_the_callers_random_state_is_left_alone(folder):
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    look_at_all(table_of(folder, "0.png", "2.png"), workers=1)
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])
    assert before[2] == random.getstate()


def test_a_negative_number_of_workers_is_refused():
    with pytest.raises(ConfigError, match="workers = -1"):
        look_at_all(plain_table(["a"]), workers=-1)
