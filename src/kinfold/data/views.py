"""What a worker does: read images, make their views with fixed randomness, stack them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from kinfold.data.datasets import Images
from kinfold.data.seeding import stable_seed
from kinfold.errors import DataError
from kinfold.seeding import seeded


class Sample(NamedTuple):
    """The views of one row, or why there are none."""

    row: int
    views: list[Any]
    broken: str | None = None


class Loaded(NamedTuple):
    """A batch as it travels from a worker: plain values, errors as text.

    Attributes:
        image: view 0 of all rows, then view 1 of all rows, …; `None` where no row could be read.
        rows: the rows that could be read.
        broken: row and message of those that could not.
        fault: what is wrong with the transform's output, if something is.
    """

    image: Tensor | None
    rows: list[int]
    broken: list[tuple[int, str]]
    fault: str | None = None


class Views(Dataset):
    """(epoch, row) → the views of the row's image, the same in every process."""

    def __init__(self, images: Images, transforms: Sequence[Callable[[Any], Tensor]], *, item: np.ndarray, seed: int):
        self.images, self.transforms, self.item, self.seed = images, transforms, item, seed

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, key: tuple[int, int]) -> Sample:
        epoch, row = key
        try:
            return Sample(row, self._views(epoch, row))
        except DataError as error:
            return Sample(row, [], broken=str(error))

    def _views(self, epoch: int, row: int) -> list[Any]:
        image, views = None, []
        for view, transform in enumerate(self.transforms):
            with seeded(stable_seed(self.seed, epoch, int(self.item[row]), view)):
                # Read inside the block, since a data set of the user's may be random itself.
                image = self.images[row] if view == 0 else image
                views.append(transform(image))
        return views


def stacked(samples: list[Sample]) -> Loaded:
    """Stack the samples of a batch; a fault is told, not raised, so that no traceback of a worker reaches the user."""
    good = [sample for sample in samples if sample.broken is None]
    rows = [sample.row for sample in good]
    broken = [(sample.row, sample.broken) for sample in samples if sample.broken is not None]
    if not good:
        return Loaded(None, rows, broken)
    views = [view for one_view in zip(*(sample.views for sample in good), strict=True) for view in one_view]
    fault = _fault(views)
    return Loaded(None if fault else torch.stack(views), rows, broken, fault)


def _fault(views: list[Any]) -> str | None:
    for view in views:
        if not isinstance(view, Tensor) or not view.is_floating_point() or view.ndim != 3:
            what = f"a tensor of {view.dtype} {tuple(view.shape)}" if isinstance(view, Tensor) else f"a {type(view).__name__}"
            return f"the transform returned {what}: it must return floating-point tensors (channels, height, width)"
    shapes = sorted({tuple(view.shape) for view in views})
    if len(shapes) > 1:
        return f"the transform returned images of shapes {shapes[0]} and {shapes[1]}: bring all to one size"
    return None
