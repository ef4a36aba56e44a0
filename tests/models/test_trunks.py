"""Trunks."""

import pytest
import torch
from torch import nn

from kinfold.errors import ConfigError
from kinfold.images.preprocessing import Preprocessing
from kinfold.models.trunks import trunk


class Turned(nn.Module):
    """Feature maps with channels last, as some transformers give them."""

    output_fmt = "NHWC"

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 5, 3)

    def forward(self, images):
        return self.convolution(images).permute(0, 2, 3, 1)


class Parts(nn.Module):
    def forward(self, images):
        return [images]


def test_the_small_network_comes_with_its_size():
    made = trunk("convnet")
    assert (made.name, made.n_features, made.preprocessing.size, made.preprocessing.crop_ratio) == ("convnet", 128, 32, 1.0)
    assert made.gives_map
    assert made.is_convolutional
    assert not made.is_custom


def test_any_module_with_maps_or_vectors_is_a_trunk():
    convolution = trunk(nn.Conv2d(3, 7, 3), size=16)
    assert (convolution.n_features, convolution.gives_map, convolution.is_convolutional) == (7, True, True)
    assert convolution.is_custom
    flat = trunk(nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 5)), size=8)
    assert (flat.n_features, flat.gives_map, flat.is_convolutional) == (5, False, False)
    lazy = trunk(nn.Sequential(nn.Flatten(), nn.LazyLinear(6)), size=8)
    assert lazy.n_features == 6


def test_maps_with_channels_last_are_turned_for_the_pooling():
    made = trunk(Turned(), size=16)
    images = torch.randn(2, 3, 16, 16)
    assert (made.n_features, made.is_convolutional) == (5, False)
    torch.testing.assert_close(made(images), made.module.convolution(images))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Flatten(2), r"gives \(1, 3, 64\) for one image"),
        (Parts(), "gives list for one image"),
        (nn.Linear(5, 5), r"cannot take images \(1, 3, 8, 8\)"),
        (nn.Flatten(0, 1), r"gives \(3, 8, 8\)"),
        (nn.Flatten(0, 2), r"gives \(24, 8\)"),
        (nn.Sequential(nn.Flatten(), nn.Linear(192, 1000)), "class scores"),
    ],
)
def test_outputs_that_are_no_features_are_refused_when_the_trunk_is_built(module, message):
    with pytest.raises(ConfigError, match=message):
        trunk(module, size=8)


def test_an_expected_number_of_features_is_checked():
    with pytest.raises(ConfigError, match="gives 128 features, not the 512 expected"):
        trunk("convnet", n_features=512)
    scores = nn.Sequential(nn.Flatten(), nn.Linear(192, 1000))
    assert trunk(scores, size=8, n_features=1000).n_features == 1000


def test_looking_at_a_module_changes_nothing_of_it():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout())
    module[2].eval()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    trunk(module, size=8)
    assert [part.training for part in module] == [True, True, False]
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())


def test_convolutional_trunks_work_in_channels_last():
    made = trunk("convnet")
    seen = []
    for block in made.module.blocks[:2]:
        block[0].register_forward_hook(lambda _, inputs, output: seen.extend([inputs[0], output]))
    made(torch.randn(2, 3, 32, 32))
    assert len(seen) == 4
    assert all(x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous() for x in seen)
    assert made.module.blocks[1][0].weight.is_contiguous(memory_format=torch.channels_last)


def test_channels_last_changes_no_value_beyond_rounding():
    made = trunk("convnet").eval()
    images = torch.randn(2, 3, 32, 32)
    fast = made(images)
    plain = made.module.to(memory_format=torch.contiguous_format)(images)
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [0, -3, 2.5, True, "32"])
def test_a_size_is_a_positive_whole_number(size):
    with pytest.raises(ConfigError, match="whole number of pixels"):
        trunk("convnet", size=size)


def test_an_image_too_small_for_the_network_is_refused():
    with pytest.raises(ConfigError, match=r"`convnet` cannot take images \(1, 3, 8, 8\)"):
        trunk("convnet", size=8)


def test_own_preprocessing_brings_its_size():
    squash = Preprocessing(size=48, resize="squash")
    assert trunk("convnet", preprocessing=squash).preprocessing is squash
    with pytest.raises(ConfigError, match=r"size=32 contradicts preprocessing.size=48"):
        trunk("convnet", size=32, preprocessing=squash)


def test_a_trunk_is_taken_as_it_is_unless_something_contradicts_it():
    made = trunk("convnet", size=48)
    assert trunk(made) is made
    assert trunk(made, size=48) is made
    with pytest.raises(ConfigError, match="made already, with size=48, not 32"):
        trunk(made, size=32)
