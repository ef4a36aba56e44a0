"""How an image becomes a model's input; saved with the model, so that training's end, evaluation and serving agree."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Literal, Self

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from kinfold.errors import ConfigError, did_you_mean
from kinfold.images.decode import ImageSource, open_image

INTERPOLATIONS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
RESIZES = ("crop", "squash")
# Wider pictures lose their ends before they are resized: the centre crop drops them anyway, and a long strip would not fit in memory.
WIDEST = 8


@dataclass(frozen=True)
class Preprocessing:
    """Resize, cut, scale to 0..1 and normalise: any image source → Float[Tensor, "3 size size"], without randomness.

        x = (rgb / 255 − mean) / std

    `crop` brings the shorter side to round(size / crop_ratio) and cuts the centre; `squash` resizes both sides to `size` and
    keeps the whole frame at the cost of its proportions. Resizing is Pillow's, which filters before it shrinks.

    Attributes:
        size: side of the square input, in pixels.
        resize: `crop` or `squash`.
        crop_ratio: share of the shorter side that the crop keeps, in (0, 1]; `squash` ignores it.
        interpolation: one of nearest, box, bilinear, hamming, bicubic, lanczos.
        mean: per channel red, green, blue, in units of 0..1.
        std: per channel, > 0.

    Raises:
        ConfigError: a value is out of range or unknown.

    Example:
        >>> preprocessing = Preprocessing(size=32, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
        >>> image = preprocessing(Image.new("RGB", (80, 60), "white"))
        >>> tuple(image.shape), float(image.max())
        ((3, 32, 32), 1.0)
    """

    size: int = 224
    resize: Literal["crop", "squash"] = "crop"
    crop_ratio: float = 0.875
    interpolation: str = "bicubic"
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)

    def __post_init__(self) -> None:
        """Refuse values that would fail, or silently mislead, later."""
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ConfigError(f"preprocessing `size` is {self.size!r}: it must be a whole number of pixels above 0.")
        if self.resize not in RESIZES:
            raise ConfigError(f"preprocessing `resize` is {self.resize!r}: {did_you_mean(str(self.resize), RESIZES)}")
        if not _is_number(self.crop_ratio) or not 0 < self.crop_ratio <= 1:
            raise ConfigError(f"preprocessing `crop_ratio` is {self.crop_ratio!r}: it must lie above 0 and at most at 1.")
        if self.interpolation not in INTERPOLATIONS:
            hint = did_you_mean(str(self.interpolation), INTERPOLATIONS)
            raise ConfigError(f"preprocessing `interpolation` is {self.interpolation!r}: {hint}")
        object.__setattr__(self, "mean", _three_channels("mean", self.mean))
        object.__setattr__(self, "std", _three_channels("std", self.std))
        if min(self.std) <= 0:
            raise ConfigError(f"preprocessing `std` is {self.std}: every channel must be above 0.")

    def __call__(self, source: ImageSource) -> Float[Tensor, "3 h w"]:
        """Return the model's input for one image (a path, bytes, an open file, a Pillow image or an array)."""
        return self.normalised(self.resized(open_image(source, size=self.short_side)))

    @property
    def short_side(self) -> int:
        """The shorter side, in pixels, that an image has before it is cut."""
        return self.size if self.resize == "squash" else max(self.size, round(self.size / self.crop_ratio))

    def resized(self, image: Image.Image) -> Image.Image:
        """Return the RGB picture resized and cut to `size` × `size`."""
        resample = INTERPOLATIONS[self.interpolation]
        if self.resize == "squash":
            return image.resize((self.size, self.size), resample)
        short = min(image.size)
        image = _cut(image, min(image.width, WIDEST * short), min(image.height, WIDEST * short))
        width, height = (int(self.short_side * side / short) for side in image.size)
        return _cut(image.resize((width, height), resample), self.size, self.size)

    def normalised(self, image: Image.Image) -> Float[Tensor, "3 h w"]:
        """Return an RGB picture of any size as a normalised tensor."""
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).to(torch.float32) / 255
        mean, std = torch.tensor(self.mean).view(3, 1, 1), torch.tensor(self.std).view(3, 1, 1)
        return ((pixels - mean) / std).contiguous()

    def to_dict(self) -> dict[str, object]:
        """Return plain values for a JSON or TOML file; `from_dict` reads them back to an equal object."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, object]) -> Self:
        """Build from plain values; what is left out keeps its default.

        Raises:
            ConfigError: a key is not known, or a value is out of range.
        """
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                raise ConfigError(f"preprocessing key `{key}` is not known; {did_you_mean(str(key), known)}")
        return cls(**values)  # pyright: ignore[reportArgumentType]  # checked by __post_init__


def _cut(image: Image.Image, width: int, height: int) -> Image.Image:
    if image.size == (width, height):
        return image
    left, top = round((image.width - width) / 2), round((image.height - height) / 2)
    return image.crop((left, top, left + width, top + height))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _three_channels(name: str, values: Sequence[float]) -> tuple[float, float, float]:
    is_sequence = isinstance(values, Sequence) and not isinstance(values, str)
    if not is_sequence or len(values) != 3 or not all(map(_is_number, values)):
        raise ConfigError(f"preprocessing `{name}` is {values!r}: it must be three numbers, for red, green and blue.")
    red, green, blue = (float(value) for value in values)
    return red, green, blue
