import json
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torchvision.transforms import v2

from kinfold.errors import ConfigError
from kinfold.images.preprocessing import INTERPOLATIONS, Preprocessing

PLAIN = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}


def noise(width, height, seed=0):
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


def torchvision_pipeline(preprocessing):
    mode = v2.InterpolationMode(preprocessing.interpolation)
    if preprocessing.resize == "squash":
        steps = [v2.Resize((preprocessing.size, preprocessing.size), mode)]
    else:
        steps = [v2.Resize(preprocessing.short_side, mode), v2.CenterCrop(preprocessing.size)]
    steps += [v2.PILToTensor(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(preprocessing.mean, preprocessing.std)]
    return v2.Compose(steps)


@settings(max_examples=40, deadline=None)
@given(
    width=st.integers(8, 120),
    height=st.integers(8, 120),
    size=st.integers(4, 50),
    resize=st.sampled_from(["crop", "squash"]),
    interpolation=st.sampled_from(["bilinear", "bicubic", "lanczos"]),
)
def test_it_does_what_torchvisions_usual_pipeline_does(width, height, size, resize, interpolation):
    preprocessing = Preprocessing(size=size, resize=resize, interpolation=interpolation)
    image = noise(width, height)
    found = preprocessing(image)
    assert found.shape == (3, size, size)
    assert found.dtype == torch.float32
    if max(width, height) <= 8 * min(width, height):
        torch.testing.assert_close(found, torchvision_pipeline(preprocessing)(image), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("size", "short_side"), [(224, 256), (128, 146), (48, 55)])
def test_the_usual_sizes_before_the_crop(size, short_side):
    assert Preprocessing(size=size).short_side == short_side


def test_the_crop_keeps_the_centre_and_squash_keeps_the_whole():
    image = Image.new("RGB", (300, 100), "black")
    image.paste("white", (100, 0, 200, 100))
    assert Preprocessing(size=32, crop_ratio=1.0, **PLAIN)(image).min() > 0.5
    squashed = Preprocessing(size=30, resize="squash", **PLAIN)(image)
    assert squashed[:, :, :9].max() < 0.1
    assert squashed[:, :, 12:18].min() > 0.9


def test_channels_are_red_green_blue_and_normalised_each_by_its_own():
    image = Image.new("RGB", (8, 8), (255, 102, 0))
    found = Preprocessing(size=4, mean=(0.5, 0.4, 0.1), std=(0.5, 0.1, 0.2))(image)
    torch.testing.assert_close(found[:, 0, 0], torch.tensor([1.0, 0.0, -0.5]))


def test_a_long_strip_needs_no_more_memory_than_its_centre(monkeypatch):
    strip = Image.new("RGB", (60_000, 1), "black")
    strip.paste("white", (29_990, 0, 30_010, 1))
    sizes, resize = [], Image.Image.resize
    monkeypatch.setattr(Image.Image, "resize", lambda image, size, *rest: sizes.append(size) or resize(image, size, *rest))
    assert Preprocessing(size=64, **PLAIN)(strip).min() > 0.99
    assert sizes == [(8 * 73, 73)]


def test_paths_bytes_and_arrays_are_taken_too(tmp_path):
    image = noise(20, 30)
    image.save(tmp_path / "a.png")
    preprocessing = Preprocessing(size=16)
    expected = preprocessing(image)
    for source in (tmp_path / "a.png", (tmp_path / "a.png").read_bytes(), np.asarray(image)):
        assert torch.equal(preprocessing(source), expected)


def test_the_image_given_stays_as_it_was():
    image = noise(20, 30)
    before = image.tobytes()
    Preprocessing(size=16)(image)
    assert image.tobytes() == before
    assert image.size == (20, 30)


@settings(max_examples=30, deadline=None)
@given(
    size=st.integers(1, 1000),
    ratio=st.floats(0.01, 1.0),
    interpolation=st.sampled_from(sorted(INTERPOLATIONS)),
    mean=st.tuples(*[st.floats(-2, 2)] * 3),
    std=st.tuples(*[st.floats(0.001, 2)] * 3),
)
def test_it_survives_json_and_pickle_exactly(size, ratio, interpolation, mean, std):
    preprocessing = Preprocessing(size=size, resize="squash", crop_ratio=ratio, interpolation=interpolation, mean=mean, std=std)
    assert Preprocessing.from_dict(json.loads(json.dumps(preprocessing.to_dict()))) == preprocessing
    assert pickle.loads(pickle.dumps(preprocessing)) == preprocessing


def test_a_misspelt_key_gets_the_nearest_name():
    with pytest.raises(ConfigError, match="did you mean `crop_ratio`"):
        Preprocessing.from_dict({"crop_ration": 0.9})


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"size": 0}, "size"),
        ({"size": 32.0}, "size"),
        ({"size": True}, "size"),
        ({"resize": "crops"}, "crop"),
        ({"crop_ratio": 0.0}, "crop_ratio"),
        ({"crop_ratio": 1.1}, "crop_ratio"),
        ({"crop_ratio": float("nan")}, "crop_ratio"),
        ({"interpolation": "bicubik"}, "did you mean `bicubic`"),
        ({"mean": (0.5, 0.5)}, "mean"),
        ({"mean": 0.5}, "mean"),
        ({"mean": "abc"}, "mean"),
        ({"std": (0.5, 0.0, 0.5)}, "std"),
        ({"std": (0.5, float("inf"), 0.5)}, "std"),
    ],
)
def test_values_out_of_range_are_refused_by_name(values, named):
    with pytest.raises(ConfigError, match=named):
        Preprocessing.from_dict(values)
