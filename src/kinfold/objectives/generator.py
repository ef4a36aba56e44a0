"""The conditional generator: noise and a class number → an embedding of that class."""

from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import relu

from kinfold.core.reduce import normalise
from kinfold.errors import ConfigError, ShapeError
from kinfold.seeding import seeded

SPREAD = 0.02
"""Standard deviation of the conditioning tables' start: rows that start alike would be one class."""


class ConditionalBatchNorm(nn.Module):
    """Batch normalisation whose scale and offset belong to a class.

        CBN(h, y) = γ[y] · (h − mean) / sqrt(variance + ε) + β[y]

    Mean and variance are those of the whole batch, over all its classes; in evaluation mode the running ones.

    Args:
        n_classes: rows of the tables γ ~ N(1, 0.02²) and β ~ N(0, 0.02²).
        width: size of h.

    Reference:
        De Vries et al., Modulating early visual processing by language, NeurIPS 2017 (the layer).
    """

    def __init__(self, n_classes: int, width: int):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, affine=False)
        self.gamma = nn.Parameter(1.0 + SPREAD * torch.randn(n_classes, width))
        self.beta = nn.Parameter(SPREAD * torch.randn(n_classes, width))

    def forward(self, hidden: Float[Tensor, "n h"], label: Int[Tensor, " n"]) -> Float[Tensor, "n h"]:
        """Normalise over the batch, then scale and shift each row as its class says."""
        return torch.addcmul(self.beta[label], self.gamma[label], self.norm(hidden))


class ConditionalGenerator(nn.Module):
    """The generator of L2A-NC: g(z, y), unit vectors in the space of the embeddings; no images.

        h_1 = relu(CBN_1(W_1 z, y)),   h_2 = relu(CBN_2(W_2 h_1, y)),   h_3 = relu(CBN_3(W_3 h_2, y)),   g = W_4 h_3 / ‖W_4 h_3‖

    Four fully connected layers with conditional batch normalisation between every two: the class enters there alone. That and the
    16 numbers of noise are the paper's; the hidden width (128), relu, the start of the tables and the unit length are
    reconstructed (the width from the paper's cost claim of about 3 % more parameters).

    Args:
        n_classes: number of classes it can make.
        dim: size of the embeddings.
        noise_dim: size of z ~ N(0, I).
        hidden_dim: width of the hidden layers.
        seed: of its first weights; torch's own generator stays as it is.

    Raises:
        ConfigError: a size below 1.

    Example:
        >>> generator = ConditionalGenerator(200, 512)
        >>> generator(torch.randn(8, 16), torch.arange(8)).shape
        torch.Size([8, 512])
        >>> sum(p.numel() for p in generator.parameters()) + 200 * 512
        357248

    Reference:
        Lee, Kim, Hong, Kwak, Learning to Generate Novel Classes for Deep Metric Learning, BMVC 2021.
    """

    def __init__(self, n_classes: int, dim: int, *, noise_dim: int = 16, hidden_dim: int = 128, seed: int = 0):
        super().__init__()
        if min(n_classes, dim, noise_dim, hidden_dim) < 1:
            raise ConfigError(
                f"n_classes = {n_classes}, dim = {dim}, noise_dim = {noise_dim}, hidden_dim = {hidden_dim}: each must be at least 1."
            )
        self.n_classes, self.noise_dim = n_classes, noise_dim
        with seeded(seed):
            sizes = (noise_dim, hidden_dim, hidden_dim, hidden_dim)
            self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
            self.norms = nn.ModuleList(ConditionalBatchNorm(n_classes, hidden_dim) for _ in self.layers)
            self.out = nn.Linear(hidden_dim, dim)

    def forward(self, noise: Float[Tensor, "n z"], label: Int[Tensor, " n"]) -> Float[Tensor, "n d"]:
        """Return one unit vector for each row of noise, of the class that its label numbers.

        Raises:
            ShapeError: noise of another size; a single row in training mode, which has no variance.
        """
        if noise.ndim != 2 or noise.shape[1] != self.noise_dim or len(noise) != len(label):
            raise ShapeError(
                f"noise is {tuple(noise.shape)} for {len(label)} labels: it must be ({len(label)}, {self.noise_dim}), one row a label."
            )
        if self.training and len(noise) < 2:
            raise ShapeError(
                f"the generator got {len(noise)} row in training mode: batch normalisation needs at least 2. Generate more vectors a "
                "batch, or call `eval()` first, which takes the running statistics."
            )
        hidden = noise
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = relu(norm(layer(hidden), label))
        return normalise(self.out(hidden))
