"""What an image is, whatever its name: a key of its content."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from kinfold.data.datasets import ImageFiles, Images

KEY_BYTES = 16


def content_key(images: Images, row: int, *extra: int) -> bytes:
    """Return 16 bytes that are equal for an equal file (cut to an equal box), or equal pixels where images are no files.

    Args:
        images: of a table or a data set.
        row: which of them.
        extra: numbers that the key depends on besides.

    Raises:
        DataError: an image that is no file cannot be read.
        OSError: a file cannot be read.
    """
    digest = blake2b(digest_size=KEY_BYTES)
    if isinstance(images, ImageFiles):
        digest.update(Path(images.paths[row]).read_bytes())
        box = images.boxes[row] if images.boxes is not None else None
        digest.update(repr(tuple(box) if box is not None else None).encode())
    else:
        digest.update(_pixels(images[row]))
    digest.update(repr(extra).encode())
    return digest.digest()


def _pixels(image: Any) -> bytes:
    array = image.numpy() if isinstance(image, Tensor) else np.asarray(image)
    return f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes()
