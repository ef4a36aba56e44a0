"""Whatever a user calls images → preprocessed batches in the same order."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from kinfold.errors import ConfigError, DataError, ShapeError
from kinfold.images.decode import ImageSource
from kinfold.images.preprocessing import Preprocessing

Images = ImageSource | Tensor | Iterable[ImageSource]
"""One image, several, or a preprocessed tensor (n, 3, h, w)."""


def image_batches(images: Images, preprocessing: Preprocessing, *, batch_size: int) -> Iterator[Float[Tensor, "b 3 h w"]]:
    """Yield preprocessed batches; images are decoded one batch at a time.

    Args:
        images: one image or several (paths, bytes, open files, Pillow images, arrays), or a tensor that is preprocessed already.
        preprocessing: what turns one image into a tensor.
        batch_size: images per batch; the last batch may be smaller.

    Raises:
        ConfigError: the batch size is below 1.
        DataError: an image is missing, broken or no image; the message names it and its position.
        ShapeError: a tensor or an array does not have the shape of images.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ConfigError(f"`batch_size` is {batch_size!r}: it must be a whole number above 0.")
    if isinstance(images, Tensor):
        tensor = _checked(images)
        yield from (tensor[start : start + batch_size] for start in range(0, len(tensor), batch_size))
        return
    sources = _sources(images)
    for start in range(0, len(sources), batch_size):
        rows = range(start, min(start + batch_size, len(sources)))
        yield torch.stack([_prepared(sources, row, preprocessing) for row in rows])


def _checked(images: Tensor) -> Float[Tensor, "n 3 h w"]:
    if not images.is_floating_point():
        raise DataError(
            f"a tensor counts as preprocessed, but this one holds {images.dtype}: give paths, Pillow images or numpy arrays instead."
        )
    if images.ndim not in (3, 4) or images.shape[-3] != 3:
        raise ShapeError(f"images are {tuple(images.shape)}: a preprocessed tensor is (n, 3, h, w), or (3, h, w) for one image.")
    return images if images.ndim == 4 else images[None]


def _sources(images: Images) -> list[ImageSource]:
    if isinstance(images, np.ndarray) and images.dtype.kind in "OUS":
        return images.tolist()
    if isinstance(images, np.ndarray):
        if images.ndim == 4:
            return list(images)
        if images.ndim == 2 or (images.ndim == 3 and images.shape[2] in (1, 3, 4)):
            return [images]
        raise ShapeError(
            f"images are an array {images.shape}: one image is (h, w), (h, w, 1), (h, w, 3) or (h, w, 4), several are (n, h, w, channels)."
        )
    if isinstance(images, os.PathLike):
        return [Path(images)]
    if isinstance(images, str | bytes | Image.Image) or hasattr(images, "read"):
        return [images]  # pyright: ignore[reportReturnType]  # what can be read is an open file
    if not isinstance(images, Iterable):
        raise DataError(f"images are of type {type(images).__name__}: give paths, Pillow images, arrays, or a list of them.")
    return list(images)  # pyright: ignore[reportReturnType]  # single images are gone by now


def _prepared(sources: list[ImageSource], row: int, preprocessing: Preprocessing) -> Float[Tensor, "3 h w"]:
    try:
        return preprocessing(sources[row])
    except DataError as error:
        raise DataError(f"image {row + 1} of {len(sources)}: {error}") from error
