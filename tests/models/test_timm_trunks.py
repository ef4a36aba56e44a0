"""Trunks by timm's names."""

import pytest
import timm
import torch

from kinfold.errors import ConfigError
from kinfold.models.trunks import trunk


@pytest.mark.parametrize(
    ("name", "n_features", "gives_map", "is_convolutional"),
    [
        ("resnet18", 512, True, True),
        ("test_convnext", 64, True, True),
        ("mobilenetv3_small_050", 1024, True, True),
        ("test_efficientnet", 256, True, True),
        ("test_vit", 64, False, False),
        ("deit_tiny_distilled_patch16_224", 192, False, False),
    ],
)
def test_every_family_gives_features_of_the_stated_number(name, n_features, gives_map, is_convolutional):
    made = trunk(name, pretrained=False)
    assert (made.name, made.n_features, made.gives_map, made.is_convolutional) == (name, n_features, gives_map, is_convolutional)
    size = made.preprocessing.size
    with torch.no_grad():
        output = made.eval()(torch.randn(2, 3, size, size))
    assert output.shape[:2] == (2, n_features)
    assert output.ndim == (4 if gives_map else 2)


@pytest.mark.parametrize("name", ["resnet18", "test_convnext", "mobilenetv3_small_050"])
def test_pooled_gives_what_timm_gives(name):
    made = trunk(name, pretrained=False, size=64, pooled=True).eval()
    reference = timm.create_model(name, pretrained=False, num_classes=0).eval()
    reference.load_state_dict(made.module.state_dict())
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(made(images), reference(images), rtol=1e-4, atol=1e-4)
    assert not made.gives_map


def test_preprocessing_is_timms_own():
    stated = trunk("test_vit", pretrained=False).preprocessing
    assert (stated.size, stated.crop_ratio, stated.interpolation) == (160, 0.95, "bicubic")
    assert stated.mean == stated.std == (0.5, 0.5, 0.5)
    assert trunk("resnet18", pretrained=False, size=96).preprocessing.size == 96
    assert trunk("resnet18", pretrained=False, size=96).preprocessing.mean == (0.485, 0.456, 0.406)


def test_a_transformer_is_built_for_the_size_that_is_asked_for():
    made = trunk("test_vit3", pretrained=False, size=96).eval()
    assert made(torch.zeros(1, 3, 96, 96)).shape == (1, 96)


def test_a_size_that_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match=r"test_vit.*size 7|cannot take"):
        trunk("test_vit", pretrained=False, size=7)


@pytest.mark.parametrize(
    ("name", "near"), [("resnet81", "resnet18"), ("tf_eficientnet_lite0", "tf_efficientnet_lite0"), ("convnett", "convnet")]
)
def test_a_misspelt_name_is_answered_with_the_nearest(name, near):
    with pytest.raises(ConfigError, match=f"`{name}` is not known; did you mean.*`{near}`") as raised:
        trunk(name, pretrained=False)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("name", ["hf-hub:somebody/something", "local-dir:/tmp/x", "../resnet18"])
def test_names_that_point_elsewhere_are_no_trunks(name):
    with pytest.raises(ConfigError, match="is not known"):
        trunk(name, pretrained=False)


def test_an_unknown_tag_is_one_clear_error():
    with pytest.raises(ConfigError, match=r"`resnet18.nothing` could not be built.*Invalid pretrained tag"):
        trunk("resnet18.nothing", pretrained=False)


def test_weights_that_cannot_be_fetched_say_what_to_do(monkeypatch):
    def unreachable(*_, **settings):
        assert settings["pretrained"]
        raise OSError("no route to host\nand a long story")

    monkeypatch.setattr(timm, "create_model", unreachable)
    with pytest.raises(ConfigError, match=r"`resnet18`.*no route to host.*pretrained=False.*kinfold\[offline\]") as raised:
        trunk("resnet18")
    assert "long story" not in str(raised.value)
