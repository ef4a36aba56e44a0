"""One look at every picture of a table: can it be read, what are its pixels, and a thumbnail to compare it by."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader

from kinfold.data.datasets import DatasetRows, ImageFiles, images_of
from kinfold.data.table import Table
from kinfold.data.workers import quiet, started
from kinfold.errors import ConfigError, DataError

SIDE = 32
"""Side of a thumbnail, in pixels."""
DIGEST_BYTES = 16
BATCH = 16  # short, so that Ctrl-C need not wait long for a batch that is being read

Progress = Callable[[int, int], None]
"""Told how many pictures are done, and how many there are."""


class Look(NamedTuple):
    """What one look at a picture gives; of one that cannot be read, only why."""

    fault: str = ""
    size: tuple[int, int] = (0, 0)
    digest: bytes = bytes(DIGEST_BYTES)
    thumbnail: np.ndarray | None = None
    is_blank: bool = False


@dataclass(frozen=True, eq=False)
class Pictures:
    """What is known of every picture of a table; about 3 kB a picture.

    Attributes:
        fault: row → why it cannot be read; such rows are zero everywhere else.
        size: width and height in pixels, (n, 2) int64.
        digest: 16 bytes that are equal for equal sizes and pixels, whatever the file's format, name or metadata.
        thumbnail: each picture squeezed to a square of 32 pixels, (n, 32, 32, 3) uint8.
        is_blank: all pixels have one colour, (n,) bool.
    """

    fault: dict[int, str]
    size: np.ndarray
    digest: tuple[bytes, ...]
    thumbnail: np.ndarray
    is_blank: np.ndarray

    def __len__(self) -> int:
        return len(self.digest)

    @property
    def is_readable(self) -> np.ndarray:
        """Which pictures could be read, (n,) bool."""
        readable = np.ones(len(self), dtype=bool)
        readable[list(self.fault)] = False
        return readable


def look_at_all(table: Table, *, workers: int = 0, progress: Progress | None = None) -> Pictures:
    """Read every picture of a table once, in full and upright; a row with a box is the part inside the box.

    Args:
        table: from files, or around a torch data set.
        workers: processes that read, one thread each; 0 reads in the calling process.
        progress: told after every few pictures how far it is.

    Raises:
        ConfigError: `workers` is negative.
        DataError: the table is around a data set whose images are tensors.
    """
    if workers < 0:
        raise ConfigError(f"workers = {workers}: use 0 to read in the calling process, or the number of processes.")
    images = images_of(table)
    _refuse_tensors(images)
    n, fault, digest = len(table), dict[int, str](), list[bytes]()
    size, is_blank = np.zeros((n, 2), dtype=np.int64), np.zeros(n, dtype=bool)
    thumbnail = np.zeros((n, SIDE, SIDE, 3), dtype=np.uint8)
    for row, look in enumerate(_looks(_Looks(images), workers)):
        digest.append(look.digest)
        if look.thumbnail is None:
            fault[row] = look.fault
        else:
            size[row], thumbnail[row], is_blank[row] = look.size, look.thumbnail, look.is_blank
        if progress is not None and ((row + 1) % BATCH == 0 or row + 1 == n):
            progress(row + 1, n)
    return Pictures(fault, size, tuple(digest), thumbnail, is_blank)


def look_at(image: Image.Image) -> Look:
    """Return what is kept of a picture in RGB."""
    pixels = np.asarray(image)
    digest = blake2b(str(image.size).encode(), digest_size=DIGEST_BYTES)
    digest.update(np.ascontiguousarray(pixels).data)
    thumbnail = np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    return Look(size=image.size, digest=digest.digest(), thumbnail=thumbnail, is_blank=bool((pixels == pixels[0, 0]).all()))


class _Looks:
    """The looks of a table by row, for a data loader."""

    def __init__(self, images: ImageFiles | DatasetRows):
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, row: int) -> Look:
        try:
            return look_at(self.images[row])
        except DataError as error:
            return Look(fault=str(error))


def _refuse_tensors(images: ImageFiles | DatasetRows) -> None:
    """Stop at once where every image would be refused for the same reason."""
    if isinstance(images, DatasetRows) and len(images):
        try:
            first = images.images[images.item[0]]
        except DataError:
            return  # that one is broken, and will be found so
        if isinstance(first, torch.Tensor):
            _ = images[0]  # says what to do


def _looks(looks: _Looks, workers: int) -> Iterator[Look]:
    loader = DataLoader(
        looks,  # pyright: ignore[reportArgumentType]  # all that a loader needs is a length and rows
        batch_size=BATCH,
        num_workers=workers,
        collate_fn=_as_they_are,
        worker_init_fn=quiet,
        generator=torch.Generator(),  # its own, since the loader draws from the global one otherwise
    )
    for batch in started(loader):
        yield from batch


def _as_they_are(looks: Sequence[Look]) -> list[Look]:
    return list(looks)
