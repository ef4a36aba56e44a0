"""Both halves of a cut network together are the network."""

import pytest
import torch
from torch import nn

from kinfold.errors import ConfigError
from kinfold.models.cut import cut
from kinfold.models.embedder import Embedder


@pytest.mark.parametrize(
    ("name", "block", "size"),
    [
        ("convnet", "blocks.1", 32),
        ("tf_efficientnet_lite0", "blocks.4", 32),
        ("tf_efficientnet_lite0", "blocks.4.1", 32),
        ("resnet18", "layer2", 32),
        ("convnext_atto", "stages.1", 64),
        ("vit_tiny_patch16_224", "blocks.3", 224),
        ("swin_tiny_patch4_window7_224", "layers.0", 224),
    ],
)
def test_behind_after_front_is_the_network_to_the_bit(name, block, size):
    module = Embedder(name, None, size=size, pretrained=False).eval().trunk.module
    front, behind = cut(module, block)
    x = torch.randn(2, 3, size, size)
    with torch.no_grad():
        assert torch.equal(behind(front(x)), module(x))
    assert not {id(p) for p in front.parameters()} & {id(p) for p in behind.parameters()}


def test_the_halves_share_parameters_and_follow_the_mode_of_the_network():
    layers = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Linear(2, 2))
    _, behind = cut(layers, "0")
    layers.eval()
    x = torch.ones(1, 2)
    assert torch.equal(behind(x), layers[2](x))
    with torch.no_grad():
        layers[2].weight.zero_()
    assert torch.equal(behind(x), layers[2].bias[None])


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        y = self.first(x)
        return self.second(y) + x


class Twice(Around):
    def forward(self, x):
        return self.second(self.first(self.first(x)))


class Choosing(Around):
    def forward(self, x):
        return self.second(self.first(x)) if x.sum() > 0 else x


@pytest.mark.parametrize(
    ("module", "block", "message"),
    [
        (Around(), "first", "also uses `x`"),
        (Twice(), "first", "used 2 times"),
        (Choosing(), "first", "cannot be cut behind `first`"),
        (Around(), "firts", "did you mean `first`"),
    ],
)
def test_what_cannot_be_cut_says_why(module, block, message):
    with pytest.raises(ConfigError, match=message):
        cut(module, block)
