"""Trunks: the part of a model that turns images into features, by name or from any module."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kinfold.errors import ConfigError
from kinfold.images.preprocessing import Preprocessing
from kinfold.models.convnet import ConvNet
from kinfold.models.timm_trunks import timm_trunk
from kinfold.modes import evaluating

CONVNET = "convnet"
CONVNET_SIZE = 32
MODULE_SIZE = 224


def trunk(
    name_or_module: "str | nn.Module",
    *,
    pretrained: bool = True,
    size: int | None = None,
    pooled: bool = False,
    preprocessing: Preprocessing | None = None,
    n_features: int | None = None,
) -> "Trunk":
    """Make a trunk and find out, with one blank image, what it gives.

    Args:
        name_or_module: `convnet` (four small blocks, 32 px, trained from scratch), a name of timm, or any module that
            maps images (n, 3, h, w) to feature maps (n, f, h, w) or vectors (n, f). A `Trunk` is returned as it is.
        pretrained: load a timm network's weights; `convnet` has none, and a module keeps its own.
        size: side of the images, in pixels; `None` is the network's own (224 for a module).
        pooled: take timm's own pooling and the layers behind it, instead of the feature map.
        preprocessing: replaces what the network states (for a module: ImageNet's mean and deviation); it brings its own size.
        n_features: the number of features that you expect; anything else is an error.

    Returns:
        The trunk, in training mode.

    Raises:
        ConfigError: an unknown name, contradicting sizes, weights that cannot be had, or an output that is no feature.
        MissingExtraError: the weights of `tf_efficientnet_lite0` need the extra `offline`.

    Example:
        >>> small = trunk("convnet", size=48)
        >>> small.n_features, small.preprocessing.size
        (128, 48)
    """
    if isinstance(name_or_module, Trunk):
        return _as_it_is(name_or_module, size, preprocessing, n_features)
    size = _checked_size(size, preprocessing)
    if isinstance(name_or_module, nn.Module):
        module, name = name_or_module, type(name_or_module).__qualname__
        own = Preprocessing(size=size or MODULE_SIZE)
    elif name_or_module == CONVNET:
        module, name = ConvNet(), CONVNET
        own = Preprocessing(size=size or CONVNET_SIZE, crop_ratio=1.0, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
    else:
        name = name_or_module
        module, own = timm_trunk(name, pretrained=pretrained, size=size, pooled=pooled)
    made = Trunk(module, name=name, preprocessing=preprocessing or own, is_custom=isinstance(name_or_module, nn.Module))
    if n_features not in (None, made.n_features):
        raise ConfigError(f"trunk `{name}` gives {made.n_features} features, not the {n_features} expected")
    if n_features is None and made.is_custom:
        _refuse_class_scores(made)
    return made


def _as_it_is(given: "Trunk", size: int | None, preprocessing: Preprocessing | None, n_features: int | None) -> "Trunk":
    wanted = {"size": size, "preprocessing": preprocessing, "n_features": n_features}
    has = {"size": given.preprocessing.size, "preprocessing": given.preprocessing, "n_features": given.n_features}
    for what, value in wanted.items():
        if value is not None and value != has[what]:
            raise ConfigError(
                f"trunk `{given.name}` is made already, with {what}={has[what]}, not {value}: say so where it is made"
            )
    return given


def _checked_size(size: int | None, preprocessing: Preprocessing | None) -> int | None:
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise ConfigError(f"the side of the images is a whole number of pixels above 0, not {size!r}")
    if preprocessing is None:
        return size
    if size not in (None, preprocessing.size):
        raise ConfigError(f"size={size} contradicts preprocessing.size={preprocessing.size}: give one of them")
    return preprocessing.size


def _refuse_class_scores(made: "Trunk") -> None:
    """Stop where ImageNet's class scores would pass for features."""
    layers = [part for part in made.module.modules() if not list(part.children())]
    last = layers[-1] if layers else None
    if isinstance(last, nn.Linear) and last.out_features == made.n_features == 1000:
        raise ConfigError(
            f"trunk `{made.name}` ends in a classifier: its 1000 outputs are class scores, not features. Replace that layer by "
            "torch.nn.Identity(), or make it with trunk(module, n_features=1000) if this is meant."
        )


class Trunk(nn.Module):
    """A network that gives features, with what is known about it; `trunk` makes one.

    Convolutional trunks keep their weights and inputs in `channels_last`, which is 1.5 to 4 times faster on a CPU.

    Attributes:
        name: the name that makes it again, or the module's class.
        is_custom: whether it wraps a module that no name makes again.
        n_features: channels of the map, or length of the vector.
        layout: `map`, `map_channels_last` (some transformers), or `vector`.
        preprocessing: what turns a picture into its input.
        is_convolutional: whether `channels_last` pays.
    """

    def __init__(self, module: nn.Module, *, name: str, preprocessing: Preprocessing, is_custom: bool = False):
        super().__init__()
        self.name = name
        self.is_custom = is_custom
        self.preprocessing = preprocessing
        self.layout, self.n_features = _probe(module, name, preprocessing.size)
        self.is_convolutional = self.layout == "map" and any(isinstance(part, nn.Conv2d) for part in module.modules())
        self.module = module.to(memory_format=torch.channels_last) if self.is_convolutional else module  # pyright: ignore[reportCallIssue]

    @property
    def gives_map(self) -> bool:
        """Whether the output still has positions to pool over."""
        return self.layout != "vector"

    def forward(self, images: Float[Tensor, "n 3 h w"]) -> Float[Tensor, "n f *positions"]:
        """Return feature maps (n, f, h, w) or vectors (n, f)."""
        if self.is_convolutional:
            images = images.contiguous(memory_format=torch.channels_last)
        output = self.module(images)
        return output.permute(0, 3, 1, 2) if self.layout == "map_channels_last" else output


@torch.no_grad()
def _probe(module: nn.Module, name: str, size: int) -> tuple[Literal["map", "map_channels_last", "vector"], int]:
    """Run one blank image; return the layout and the number of features."""
    weight = next((p for p in module.parameters() if p.is_floating_point() and not nn.parameter.is_lazy(p)), torch.zeros(()))
    with evaluating(module):
        try:
            output = module(torch.zeros(1, 3, size, size, device=weight.device, dtype=weight.dtype))
        except Exception as error:
            raise ConfigError(f"trunk `{name}` cannot take images (1, 3, {size}, {size}): {error}") from error
    shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
    if not isinstance(output, Tensor) or output.ndim not in (2, 4) or len(output) != 1:
        raise ConfigError(
            f"trunk `{name}` gives {shape} for one image: it must give a feature map (1, f, h, w) or a vector (1, f). "
            "Remove its classifier, and pool token sequences."
        )
    if output.ndim == 2:
        return "vector", output.shape[1]
    if str(getattr(module, "output_fmt", "NCHW")).endswith("NHWC"):
        return "map_channels_last", output.shape[3]
    return "map", output.shape[1]
