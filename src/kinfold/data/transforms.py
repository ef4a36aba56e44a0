"""Random views for training, of the same size and normalisation as the views for evaluation."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

from kinfold.errors import ConfigError
from kinfold.images.preprocessing import Preprocessing

Transform = Callable[[Any], Tensor]
"""An image → (3, h, w) floating-point tensor of a fixed size; random choices from the global generators of torch, random or numpy."""

# Resampling the bytes of a tensor takes half the time of resampling a PIL image, but torch knows these filters only.
TENSOR_INTERPOLATIONS = ("nearest", "bilinear", "bicubic")


def train_transform(
    preprocessing: Preprocessing,
    *,
    crop_scale: tuple[float, float] = (0.4, 1.0),
    crop_ratio_range: tuple[float, float] = (3 / 4, 4 / 3),
    flip: bool = True,
    color_jitter: float = 0.0,
) -> Transform:
    """Return the training pipeline that belongs to a preprocessing: random crop, flip, colour, normalisation.

    Where the preprocessing squashes images to a square, the crop is squashed by the same factor.

    Args:
        preprocessing: what evaluation does; its size, interpolation, mean, standard deviation and way of resizing are kept.
        crop_scale: smallest and largest share of the image's area that a crop covers; within (0, 1].
        crop_ratio_range: smallest and largest width ÷ height of what the crop shows, before it becomes a square.
        flip: mirror half of the images; not for characters.
        color_jitter: largest relative change of brightness, contrast and saturation; 0 for none.

    Returns:
        A callable from an RGB image to a (3, size, size) tensor; it survives pickling.

    Raises:
        ConfigError: a range is empty or out of bounds.

    Example:
        >>> from PIL import Image
        >>> transform = train_transform(Preprocessing(size=32), flip=False)
        >>> transform(Image.new("RGB", (50, 40))).shape
        torch.Size([3, 32, 32])
    """
    _check(crop_scale, crop_ratio_range, color_jitter)
    crop = (SquashedCrop if preprocessing.resize == "squash" else v2.RandomResizedCrop)(
        preprocessing.size,
        scale=crop_scale,
        ratio=crop_ratio_range,
        interpolation=v2.InterpolationMode(preprocessing.interpolation),
        antialias=True,
    )
    on_tensors = preprocessing.interpolation in TENSOR_INTERPOLATIONS
    steps: list[torch.nn.Module] = [v2.PILToTensor(), crop] if on_tensors else [crop, v2.PILToTensor()]
    if flip:
        steps.append(v2.RandomHorizontalFlip())
    if color_jitter:
        steps.append(v2.ColorJitter(brightness=color_jitter, contrast=color_jitter, saturation=color_jitter))
    steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(preprocessing.mean, preprocessing.std, inplace=True)]
    return v2.Compose(steps)


def decoding_size(size: int, *, crop_scale: tuple[float, float] = (0.4, 1.0)) -> int:
    """Return the shorter side that a decoded image needs so that its smallest square crop is not enlarged.

    Example:
        >>> decoding_size(128, crop_scale=(0.25, 1.0))
        256
    """
    return math.ceil(size / math.sqrt(crop_scale[0]))


def _check(crop_scale: tuple[float, float], crop_ratio_range: tuple[float, float], color_jitter: float) -> None:
    if not 0 < crop_scale[0] <= crop_scale[1] <= 1:
        raise ConfigError(f"crop_scale = {crop_scale}: give the smallest and the largest share of the area, within (0, 1]")
    if not 0 < crop_ratio_range[0] <= crop_ratio_range[1]:
        raise ConfigError(f"crop_ratio_range = {crop_ratio_range}: give the smallest and the largest width ÷ height, above 0")
    if not 0 <= color_jitter < 1:
        raise ConfigError(f"color_jitter = {color_jitter}: give a relative change of at least 0 and below 1")


class SquashedCrop(v2.RandomResizedCrop):
    """A random crop of the image squashed to a square: `ratio` is that of the crop after squashing."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, int]:
        """Choose the crop in the unit square and stretch it to the image; the whole image where the choice does not fit."""
        height, width = v2.functional.get_size(flat_inputs[0])
        least, most = math.log(self.ratio[0]), math.log(self.ratio[1])
        for _ in range(10):
            area = torch.empty(1).uniform_(*self.scale).item()
            half_log_ratio = torch.empty(1).uniform_(least, most).item() / 2
            w = round(math.sqrt(area) * math.exp(half_log_ratio) * width)
            h = round(math.sqrt(area) * math.exp(-half_log_ratio) * height)
            if 0 < w <= width and 0 < h <= height:
                top = int(torch.randint(0, height - h + 1, ()).item())
                left = int(torch.randint(0, width - w + 1, ()).item())
                return {"top": top, "left": left, "height": h, "width": w}
        return {"top": 0, "left": 0, "height": height, "width": width}
