"""One door for images: any source becomes an upright 8-bit RGB picture, or a DataError that names it."""

import io
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image, UnidentifiedImageError

from kinfold.errors import ConfigError, DataError

ImageSource = str | Path | bytes | IO[bytes] | Image.Image | np.ndarray
"""A path, the bytes of a file, an open file, a Pillow image, or an array (h w), (h w 1), (h w 3) or (h w 4)."""

ORIENTATION_TAG = 0x0112
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# What Pillow raises for files that are cut off, damaged or lie about themselves.
BROKEN = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, struct.error)


def open_image(source: ImageSource, *, size: int | None = None) -> Image.Image:
    """Decode an image from any source, upright, in 8-bit RGB.

    Transparent parts show a white ground. 16-bit grey is divided by 257 (so 65535 → 255), never clipped; 32-bit whole numbers
    are read as 16-bit grey; floating-point grey counts 0 to 1 when it lies there, else 0 to 255, else 0 to 65535. Of an
    animation the first frame is taken; of a Pillow image its current one.

    Args:
        source: a path, the bytes of a file, a seekable open file, a Pillow image, or a numpy array (rows, columns, channels).
        size: the shorter side that is needed, in pixels. A JPEG may then be decoded at 1/2, 1/4 or 1/8 of its size, which is
            several times faster; its shorter side never falls below `size`. `None`: always the full size.

    Returns:
        A new image; it shares nothing with the source and carries no metadata.

    Raises:
        DataError: the source is missing, empty, broken, too large (a decompression bomb) or not an image.
        ConfigError: `size` is not a positive whole number.

    Example:
        >>> open_image(np.zeros((2, 3), dtype=np.uint8)).size
        (3, 2)
    """
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise ConfigError(f"`size` is {size!r}: it must be a whole number of pixels above 0, or None for the full size.")
    name = source_name(source)
    with _quiet():
        try:
            return _decoded(source, name=name, size=size)
        except DataError:
            raise
        except FileNotFoundError as error:
            raise DataError(
                f"{name} does not exist: check the path, and the root folder that the table's paths start from."
            ) from error
        except IsADirectoryError as error:
            raise DataError(f"{name} is a folder, not an image file.") from error
        except PermissionError as error:
            raise DataError(f"{name} may not be read: check its permissions.") from error
        except Image.DecompressionBombError as error:
            raise DataError(
                f"{name} is too large to decode safely: {error} Shrink the file, or raise PIL.Image.MAX_IMAGE_PIXELS."
            ) from error
        except UnidentifiedImageError as error:
            raise DataError(f"{name} {_why_unidentified(source)}") from error
        except BROKEN as error:
            raise DataError(f"{name} is broken: {error}. Replace the file or remove its row.") from error


def source_name(source: ImageSource) -> str:
    """Return how messages call a source: its path, or what it is."""
    if isinstance(source, str | Path):
        return f"image {str(source)!r}"
    if isinstance(source, bytes):
        return f"image given as {len(source):,} bytes"
    if isinstance(source, np.ndarray):
        return f"image array of shape {source.shape} and type {source.dtype}"
    path = getattr(source, "filename", None) or getattr(source, "name", None)
    if isinstance(path, str | Path) and str(path):
        return f"image {str(path)!r}"
    return "image given as an object of type " + type(source).__name__


def _decoded(source: ImageSource, *, name: str, size: int | None) -> Image.Image:
    if isinstance(source, np.ndarray):
        return _rgb(_from_array(source, name), name)
    if isinstance(source, Image.Image):
        source.load()
        return _rgb(_upright(source), name)
    if not isinstance(source, str | Path | bytes) and not hasattr(source, "read"):
        raise DataError(f"{name} cannot be decoded: give a path, bytes, an open file, a Pillow image or a numpy array.")
    with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
        if size is not None:
            image.draft(None, (size, size))
        image.load()
        return _rgb(_upright(image), name)


def _from_array(array: np.ndarray, name: str) -> Image.Image:
    if 0 in array.shape:
        raise DataError(f"{name} is empty.")
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.ndim == 2 and array.dtype == np.bool_:
        array = array.astype(np.uint8) * 255
    is_grey = array.ndim == 2 and array.dtype in (np.uint8, np.uint16)
    is_colour = array.ndim == 3 and array.shape[2] in (3, 4) and array.dtype == np.uint8
    if not (is_grey or is_colour):
        raise DataError(
            f"{name} is no image: give uint8 of shape (rows, columns), (rows, columns, 3) or (rows, columns, 4), or uint16 grey. "
            "Multiply values from 0 to 1 by 255 first; move a leading channel axis to the end."
        )
    return Image.fromarray(np.ascontiguousarray(array))


def _upright(image: Image.Image) -> Image.Image:
    """Turn the picture as its EXIF tag says; damaged EXIF data counts as none."""
    try:
        orientation = image.getexif().get(ORIENTATION_TAG)
    except BROKEN:
        return image
    return image.transpose(UPRIGHT[orientation]) if orientation in UPRIGHT else image


def _rgb(image: Image.Image, name: str) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        image = Image.fromarray(_eight_bit(np.asarray(image), name))
    elif image.has_transparency_data:
        over = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", over.size, "white"), over)
    rgb = image.convert("RGB")
    rgb.info.clear()  # an orientation tag left here would turn the picture again at the next reading
    return rgb


def _eight_bit(grey: np.ndarray, name: str) -> np.ndarray:
    low, high = float(grey.min()), float(grey.max())
    is_float = grey.dtype.kind == "f"
    if not (low >= 0 and high <= 65535):  # also catches NaN
        raise DataError(
            f"{name} holds grey values from {low:g} to {high:g}, which have no fixed meaning: convert it to 8 or 16 bits."
        )
    if is_float and high <= 1:
        scaled = grey.astype(np.float64) * 255
    elif is_float and high <= 255:
        scaled = grey.astype(np.float64)
    else:
        scaled = grey.astype(np.float64) / 257
    return np.floor(scaled + 0.5).astype(np.uint8)


def _why_unidentified(source: ImageSource) -> str:
    if isinstance(source, str | Path):
        is_empty = Path(source).stat().st_size == 0
    elif isinstance(source, bytes):
        is_empty = not source
    else:
        is_empty = False
    if is_empty:
        return "is empty (0 bytes): replace the file or remove its row."
    return "is not an image that Pillow can read: replace the file, convert it to PNG or JPEG, or remove its row."


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Pillow's warnings (large files, damaged EXIF) from reaching the user: what matters is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
