"""Training views: size, normalisation, and where the crops lie."""

import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from kinfold.data.transforms import SquashedCrop, decoding_size, train_transform
from kinfold.errors import ConfigError
from kinfold.images.preprocessing import Preprocessing


def gradient(width, height):
    """A picture whose red is its column and whose green is its row, both from 0 to 255."""
    x = np.linspace(0, 255, width)[None, :].repeat(height, 0)
    y = np.linspace(0, 255, height)[:, None].repeat(width, 1)
    return Image.fromarray(np.stack([x, y, 0 * x], axis=2).round().astype(np.uint8))


@pytest.mark.parametrize("resize", ["crop", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear", "nearest", "lanczos"])
def test_a_view_has_the_size_and_the_units_of_the_preprocessing(resize, interpolation):
    preprocessing = Preprocessing(size=24, resize=resize, interpolation=interpolation, mean=(0.1, 0.2, 0.3), std=(0.5, 0.25, 2.0))
    image = Image.new("RGB", (60, 40), (200, 100, 50))
    view = train_transform(preprocessing)(image)
    assert view.dtype == torch.float32
    assert torch.allclose(view, preprocessing(image), atol=1e-6)


def test_the_whole_square_without_chance_is_the_evaluation_view():
    preprocessing = Preprocessing(size=32, crop_ratio=1.0)
    transform = train_transform(preprocessing, crop_scale=(1.0, 1.0), crop_ratio_range=(1.0, 1.0), flip=False)
    image = gradient(48, 48)
    assert (transform(image) - preprocessing(image)).abs().max() < 0.05


def test_a_squashed_view_of_the_whole_image_is_the_evaluation_view():
    preprocessing = Preprocessing(size=32, resize="squash")
    transform = train_transform(preprocessing, crop_scale=(1.0, 1.0), crop_ratio_range=(1.0, 1.0), flip=False)
    image = gradient(90, 30)
    assert (transform(image) - preprocessing(image)).abs().max() < 0.05


def test_squashed_crops_keep_area_and_proportions_after_squashing():
    crop = SquashedCrop(8, scale=(0.3, 0.6), ratio=(0.8, 1.25))
    image = torch.zeros(3, 100, 400)
    for _ in range(200):
        box = crop.make_params([image])
        width, height = box["width"] / 400, box["height"] / 100
        assert 0.28 <= width * height <= 0.62
        assert 0.77 <= width / height <= 1.3
        assert 0 <= box["top"] <= 100 - box["height"]
        assert 0 <= box["left"] <= 400 - box["width"]


def test_crops_reach_every_side():
    crop = SquashedCrop(8, scale=(0.5, 1.0), ratio=(0.9, 1.1))
    boxes = [crop.make_params([torch.zeros(3, 6, 6)]) for _ in range(500)]
    assert min(b["top"] for b in boxes) == min(b["left"] for b in boxes) == 0
    assert max(b["top"] + b["height"] for b in boxes) == max(b["left"] + b["width"] for b in boxes) == 6


def test_half_of_the_views_are_mirrored_unless_flips_are_off():
    def rising(flip):
        transform = train_transform(Preprocessing(size=16), crop_scale=(0.9, 1.0), flip=flip)
        return sum(bool(view[0, 8, -1] > view[0, 8, 0]) for view in (transform(gradient(32, 32)) for _ in range(60)))

    assert rising(flip=False) == 60
    assert 15 < rising(flip=True) < 45


def test_colour_changes_only_when_asked():
    def spread(strength):
        transform = train_transform(Preprocessing(size=8), color_jitter=strength)
        image = Image.new("RGB", (16, 16), (120, 90, 60))
        return torch.stack([transform(image) for _ in range(10)]).std(dim=0).max().item()

    assert spread(0.0) < 1e-6
    assert spread(0.4) > 0.01


def test_transforms_survive_pickling():
    transform = train_transform(Preprocessing(size=8, resize="squash"), color_jitter=0.2)
    again = pickle.loads(pickle.dumps(transform))
    torch.manual_seed(1)
    view = transform(gradient(20, 20))
    torch.manual_seed(1)
    assert torch.equal(again(gradient(20, 20)), view)


def test_decoding_size_never_enlarges_the_smallest_crop():
    assert (
        decoding_size(128, crop_scale=(0.4, 1.0)) * 0.4**0.5 >= 128 > (decoding_size(128, crop_scale=(0.4, 1.0)) - 1) * 0.4**0.5
    )


@pytest.mark.parametrize(
    "choice",
    [
        {"crop_scale": (0.0, 1.0)},
        {"crop_scale": (0.9, 0.5)},
        {"crop_scale": (0.5, 1.5)},
        {"crop_ratio_range": (2.0, 1.0)},
        {"color_jitter": 1.0},
    ],
)
def test_ranges_that_cannot_be_are_refused(choice):
    with pytest.raises(ConfigError, match=next(iter(choice))):
        train_transform(Preprocessing(), **choice)
