"""Generated vectors for a batch: labels and noise are drawn, the generator makes the rest."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from kinfold.objectives.draws import Draws
from kinfold.objectives.generator import ConditionalGenerator
from kinfold.records import Embedded


@dataclass(frozen=True)
class Generated:
    """Vectors that were made up.

    Attributes:
        embedding: of the mean length of the batch's.
        code: number of the generator's class, from 0.
        label: the same class as the host numbers it.
        item: an item each, none of them a real one: negative numbers.
    """

    embedding: Float[Tensor, "n d"]
    code: Int[Tensor, " n"]
    label: Int[Tensor, " n"]
    item: Int[Tensor, " n"]


class NovelVectors(nn.Module):
    """A conditional generator with the draws of its classes and noise; both are apart from the data's order and from each other.

    Args:
        n_classes: classes it makes.
        dim: size of the embedding.
        first_label: number that the host knows class 0 by.
        in_groups: draw classes first, each with as many vectors as the batch has of one, as pair losses need it; otherwise each
            vector's class is drawn, with replacement.
        ratio: vectors for each image of a batch; at least 2 vectors.
        noise_dim: size of the noise.
        hidden_dim: width of the generator.
        seed: of weights, classes and noise.

    Example:
        >>> vectors = NovelVectors(200, 64, first_label=100)
        >>> x = torch.randn(8, 64)
        >>> batch = Embedded(x, x, torch.arange(8), torch.arange(8), torch.zeros(8, dtype=torch.long))
        >>> made = vectors(batch)
        >>> made.embedding.shape, bool((made.label >= 100).all())
        (torch.Size([8, 64]), True)
    """

    def __init__(  # noqa: PLR0913 (each is a choice of the method)
        self,
        n_classes: int,
        dim: int,
        *,
        first_label: int = 0,
        in_groups: bool = False,
        ratio: float = 1.0,
        noise_dim: int = 16,
        hidden_dim: int = 128,
        seed: int = 0,
    ):
        super().__init__()
        self.n_classes, self.first_label, self.in_groups, self.ratio = n_classes, first_label, in_groups, ratio
        self.network = ConditionalGenerator(n_classes, dim, noise_dim=noise_dim, hidden_dim=hidden_dim, seed=seed)
        self.draws = Draws(seed)

    def forward(self, batch: Embedded) -> Generated:
        """Return vectors for this batch; the next call draws others."""
        for_noise, for_class = self.draws.next(2)
        code = self._codes(for_class, batch)
        made = self.network(self._noise(for_noise, code), code)
        length = batch.embedding.detach().norm(dim=1).mean()  # what a similarity other than the cosine sees
        item = -1 - torch.arange(len(code), device=code.device)
        return Generated(made * length, code, code + self.first_label, item)

    def looked_at(self, code: Int[Tensor, " k"], n: int) -> tuple[Float[Tensor, "t d"], Int[Tensor, " t"]]:
        """Return `n` unit vectors of each of these classes, and their classes; always the same, and nothing is changed.

        Batch normalisation takes its running statistics, so that a vector does not depend on the others.
        """
        network, code = self.network, code.repeat_interleave(n)
        was_training = network.training
        network.eval()
        try:
            return network(self._noise(self.draws.fixed()[0], code), code), code
        finally:
            network.train(was_training)

    def _noise(self, source: np.random.Generator, code: Tensor) -> Tensor:
        noise = source.standard_normal((len(code), self.network.noise_dim), dtype=np.float32)
        return torch.from_numpy(noise).to(code.device)

    def _codes(self, source: np.random.Generator, batch: Embedded) -> Tensor:
        n = max(2, round(self.ratio * len(batch.label)))
        if self.in_groups:
            each = max(2, round(len(batch.label) / len(batch.label.unique())))
            code = source.choice(self.n_classes, min(self.n_classes, max(1, n // each)), replace=False).repeat(each)
        else:
            code = source.integers(self.n_classes, size=n)
        return torch.from_numpy(code).to(batch.label.device)
