"""The frozen part of a model apart from the rest: images → values that can be kept → feature and embedding."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kinfold.models.cut import cut
from kinfold.models.embedder import TRUNK, Embedder
from kinfold.models.fingerprint import fingerprint
from kinfold.records import ParamGroup


class Front(nn.Module):
    """The part of an embedder from the images to the values that are kept: a trunk with its pooling, or the trunk up to a block.

    Args:
        embedder: the model, whose modules it shares.
        part: `trunk`, or the name of the last block of it.

    Raises:
        ConfigError: the trunk cannot be cut there.

    Example:
        >>> front = Front(Embedder("convnet", 16), "trunk")
        >>> front(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 128])
    """

    def __init__(self, embedder: Embedder, part: str = TRUNK):
        super().__init__()
        self.part, self.trunk_name, self.size = part, embedder.trunk.name, embedder.preprocessing.size
        if part == TRUNK:
            pool = embedder.pool if _pools_early(embedder) else nn.Identity()
            self.steps = nn.Sequential(embedder.trunk, pool)
        else:
            self.steps = nn.Sequential(_Input(embedder.trunk), cut(embedder.trunk.module, part)[0])

    def forward(self, images: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n ..."]:
        """Return the values to keep of preprocessed images."""
        return self.steps(images)

    def fingerprint(self) -> str:
        """Return what is equal exactly for equal weights of an equal part."""
        pool = [type(module).__qualname__ for module in self.steps]
        return fingerprint(self.steps.state_dict(), {"trunk": self.trunk_name, "part": self.part, "steps": pool})


class Rest(nn.Module):
    """An embedder that trains behind its frozen part, from images or from kept values.

    Its state is that of the embedder without the frozen part, under the embedder's own names, whichever way it is fed.

    Args:
        embedder: frozen by `Embedder.freeze`.
        from_values: whether it is given what `Front` gives, instead of images.
    """

    def __init__(self, embedder: Embedder, *, from_values: bool, part: str | None = None):
        super().__init__()
        self.embedder = embedder
        # In a tuple, so that the modules it shares with the embedder are registered once.
        self._behind = (_behind(embedder, part or embedder.frozen or TRUNK),) if from_values else ()

    def forward(self, x: Float[Tensor, "n ..."]) -> tuple[Float[Tensor, "n f"], Float[Tensor, "n d"]]:
        """Return the pooled feature and the embedding."""
        if not self._behind:
            return self.embedder(x)
        feature = self._behind[0](x)
        return feature, self.embedder.head(feature)

    def parameter_groups(self) -> list[ParamGroup]:
        """Return the embedder's groups."""
        return self.embedder.parameter_groups()

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return what may change in training."""
        frozen = self.embedder.frozen_names()
        return {name: value for name, value in self.embedder.state_dict(*args, **kwargs).items() if name not in frozen}

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Restore what `state_dict` returned; the frozen part stays as it is."""
        frozen = self.embedder.frozen_names()
        kept = {name: value for name, value in self.embedder.state_dict().items() if name in frozen}
        return self.embedder.load_state_dict({**kept, **state_dict}, strict=strict, assign=assign)


class _Input(nn.Module):
    """Brings images into the trunk's memory layout, as the trunk does itself."""

    def __init__(self, trunk: nn.Module):
        super().__init__()
        self.is_convolutional = trunk.is_convolutional

    def forward(self, images: Tensor) -> Tensor:
        is_map = self.is_convolutional and images.ndim == 4
        return images.contiguous(memory_format=torch.channels_last) if is_map else images


class _Output(nn.Module):
    """Ends a trunk that was cut as the trunk does itself."""

    def __init__(self, trunk: nn.Module):
        super().__init__()
        self.turns = trunk.layout == "map_channels_last"

    def forward(self, output: Tensor) -> Tensor:
        return output.permute(0, 3, 1, 2) if self.turns else output


def _behind(embedder: Embedder, part: str) -> nn.Module:
    """Return the modules from the kept values to the pooled feature."""
    if part == TRUNK:
        return nn.Identity() if _pools_early(embedder) else embedder.pool
    trunk = embedder.trunk
    return nn.Sequential(_Input(trunk), cut(trunk.module, part)[1], _Output(trunk), embedder.pool)


def _pools_early(embedder: Embedder) -> bool:
    """Whether pooling learns nothing, so that it can be done before values are kept: a vector instead of a map."""
    return not list(embedder.pool.parameters())
