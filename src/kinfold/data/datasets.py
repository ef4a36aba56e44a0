"""Where the images of the rows come from: files, or any torch data set of (image, label)."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from kinfold.data.table import SPLITS, Box, Table
from kinfold.errors import ConfigError, DataError, ShapeError, did_you_mean
from kinfold.images.decode import open_image


class Images(Protocol):
    """The images of a table by row number; reading a broken one raises `DataError`."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def __getitem__(self, row: int) -> Any:
        """Return the image of a row as the transform takes it: a PIL image, or a tensor."""
        ...

    def name(self, row: int) -> str:
        """Return what messages call the image."""
        ...


@dataclass(frozen=True)
class ImageFiles:
    """Image files, cut to the object's box where there is one.

    Attributes:
        paths: one file a row.
        boxes: the object's box a row; `None` in a row, or for all, means the whole picture.
        draft_size: the shorter side that is needed, in pixels; JPEGs may then be decoded smaller, which is faster. A row with a
            box is always decoded in full, since the box counts pixels of the full picture. `None`: always in full.

    Raises:
        ShapeError: there is not one box for every path.
    """

    paths: Sequence[str | Path]
    boxes: Sequence[Box | None] | None = None
    draft_size: int | None = None

    def __post_init__(self) -> None:
        """Keep plain text: small to send to workers, and no one else's to change."""
        object.__setattr__(self, "paths", tuple(map(str, self.paths)))
        if self.boxes is not None and len(self.boxes) != len(self.paths):
            raise ShapeError(f"{len(self.boxes)} boxes for {len(self.paths)} paths: give one a row, None for the whole picture")

    @classmethod
    def of_table(cls, table: Table, *, draft_size: int | None = None) -> Self:
        """Return the images of a table's rows."""
        return cls([table.image_path(row) for row in range(len(table))], boxes=table.boxes, draft_size=draft_size)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> Image.Image:
        _check_row(row)
        box = self.boxes[row] if self.boxes is not None else None
        image = open_image(self.paths[row], size=self.draft_size if box is None else None)
        if box is None:
            return image
        if not (0 <= box.x_1 < box.x_2 <= image.width and 0 <= box.y_1 < box.y_2 <= image.height):
            raise DataError(f"{self.name(row)} has {image.width} × {image.height} pixels, its box {tuple(box)} reaches outside")
        return image.crop(box.corners)

    def name(self, row: int) -> str:
        """Return the path of a row."""
        return str(self.paths[row])


class DatasetImages:
    """The images of a torch data set of (image, label), and its labels as class numbers.

    PIL images of any mode become RGB; anything else reaches the transform as it is.

    Args:
        dataset: any map-style data set.
        label: the labels, if they are known; else the attribute `targets` is taken, and without it every pair is read once.

    Attributes:
        classes: the distinct labels, sorted where they can be, else as they first come.
        label: class number of every row: places in `classes`.

    Raises:
        ShapeError: there is not one label for every image.

    Example:
        >>> images = DatasetImages([(torch.zeros(3, 8, 8), "b"), (torch.ones(3, 8, 8), "a")])
        >>> images.classes, images.label
        (['a', 'b'], tensor([1, 0]))
    """

    def __init__(self, dataset: Any, *, label: Iterable[Hashable] | None = None):
        self._dataset = dataset
        if label is None:
            label = getattr(dataset, "targets", None)
        if label is None:
            label = (dataset[row][1] for row in range(len(dataset)))
        values = [value.item() if isinstance(value, Tensor) else value for value in label]
        if len(values) != len(dataset):
            raise ShapeError(f"{len(values)} labels for {len(dataset)} images: give one a row")
        self.classes = _distinct(values)
        number = {name: place for place, name in enumerate(self.classes)}
        self.label = torch.tensor([number[value] for value in values], dtype=torch.int64)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, row: int) -> Any:
        _check_row(row)
        try:
            image = self._dataset[row][0]
        except OSError as error:
            raise DataError(f"{self.name(row)} cannot be read: {error}") from error
        return open_image(image) if isinstance(image, Image.Image) else image

    def name(self, row: int) -> str:
        """Return the row's number and the data set's class."""
        return f"image {row} of {type(self._dataset).__name__}"


@dataclass(frozen=True)
class DatasetRows:
    """Some rows of a data set's images, for the table that was made from it.

    Attributes:
        images: the whole data set.
        item: which row of it each of these rows is.
    """

    images: DatasetImages
    item: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.item)

    def __getitem__(self, row: int) -> Image.Image:
        _check_row(row)
        image = self.images[self.item[row]]
        if isinstance(image, Tensor):
            raise DataError(
                f"{self.name(row)} is a tensor: give the data set without its transform, pictures are cut and normalised as the model "
                "needs them."
            )
        return image if isinstance(image, Image.Image) else open_image(image)

    def name(self, row: int) -> str:
        """Return the row's number in the data set."""
        return self.images.name(self.item[row])


def table_from_dataset(dataset: Any, *, label: Iterable[Hashable] | None = None, split: str = "train") -> Table:
    """Return a table around any torch data set of (image, label), to train on or to measure.

    Args:
        dataset: map-style; images as Pillow images, arrays or paths, so without a transform to tensors.
        label: the labels, if they are known; else the attribute `targets` is taken, and without it every pair is read once.
        split: `train`, `val` or `test`, for all rows.

    Raises:
        ConfigError: an unknown split.
        ShapeError: there is not one label for every image.

    Example:
        >>> table = table_from_dataset([(Image.new("RGB", (8, 8)), "owl"), (Image.new("RGB", (8, 8)), "wren")])
        >>> table.classes
        ('owl', 'wren')
    """
    if split not in SPLITS:
        raise ConfigError(f"split {split!r} is not known; {did_you_mean(split, SPLITS)}")
    images = DatasetImages(dataset, label=label)
    names = [name if isinstance(name, int | str) and not isinstance(name, bool) else str(name) for name in images.classes]
    n = len(images)
    return Table(
        path=tuple(f"{row}" for row in range(n)),
        label=tuple(names[code] for code in images.label.tolist()),
        split=(split,) * n,
        item=np.arange(n),
        root=Path(),
        notes=(f"made from a data set of type {type(dataset).__name__}",),
        source=images,
    )


def images_of(table: Table, *, draft_size: int | None = None) -> "ImageFiles | DatasetRows":
    """Return the images of a table's rows: its files, or rows of the data set it was made from."""
    if isinstance(table.source, DatasetImages):
        return DatasetRows(table.source, tuple(table.item.tolist()))
    return ImageFiles.of_table(table, draft_size=draft_size)


def _distinct(values: list) -> list:
    try:
        return sorted(set(values))
    except TypeError:
        return list(dict.fromkeys(values))


def _check_row(row: object) -> None:
    if not isinstance(row, Integral):
        raise ConfigError(f"{row!r} is no row number: pass a sampler of whole batches as `batch_sampler=`, not as `sampler=`")
