"""The small convolutional network."""

import torch
from torch.nn.functional import cross_entropy

from kinfold.models.convnet import ConvNet
from kinfold.models.embedder import Embedder


def test_every_block_halves_the_image():
    assert ConvNet()(torch.zeros(2, 3, 48, 32)).shape == (2, 128, 3, 2)
    assert ConvNet((8, 16))(torch.zeros(2, 3, 32, 32)).shape == (2, 16, 8, 8)


def test_it_learns_stripes_from_checkers_in_a_few_steps():
    row = torch.arange(32)
    pictures = [(row[:, None] // 4 + 0 * row) % 2, (row[:, None] // 4 + row // 4) % 2]
    label = torch.arange(32) % 2
    images = torch.stack([pictures[i].float() for i in label])[:, None].repeat(1, 3, 1, 1) + 0.5 * torch.randn(32, 3, 32, 32)
    embedder = Embedder("convnet", dim=2)
    optimizer = torch.optim.Adam(embedder.parameters(), lr=1e-3)
    losses = []
    for _ in range(8):
        losses.append(cross_entropy(embedder(images)[1], label))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.2 * losses[0]
