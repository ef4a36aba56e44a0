"""Training and embedding from kept outputs of a frozen part, instead of from images."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from kinfold.data.content import content_key
from kinfold.data.datasets import Images, images_of
from kinfold.data.loader import ImageLoader
from kinfold.data.samplers import BatchSampler, SequentialBatchSampler
from kinfold.data.table import Table
from kinfold.data.transforms import Transform
from kinfold.errors import DataError
from kinfold.images.preprocessing import Preprocessing
from kinfold.models.feature_cache import BATCH, FeatureCache
from kinfold.models.frozen import Front
from kinfold.models.shards import Stored
from kinfold.records import Batch


@dataclass(frozen=True)
class Source:
    """Images, and what is done to them before the frozen part sees them.

    Attributes:
        images: the pictures.
        label: class number of each.
        item: row of each in the data table.
        transform: image → input of the network.
        view: the transform in plain values: equal values, equal inputs.
        views: how many random views there are of each image; 0: the transform is not random.
        workers: processes that load images.
        on_broken: `stop` at an image that cannot be read, or `skip`.
    """

    images: Images
    label: torch.Tensor
    item: torch.Tensor
    transform: Transform
    view: Mapping[str, Any]
    views: int = 0
    workers: int = 0
    on_broken: Any = "stop"


def evaluation_source(table: Table, preprocessing: Preprocessing, *, workers: int = 0, on_broken: str = "stop") -> Source:
    """Return a table's images as evaluation sees them."""
    return Source(
        images_of(table, draft_size=preprocessing.short_side),
        torch.as_tensor(table.class_index),
        torch.as_tensor(table.item),
        transform=preprocessing,
        view={"preprocessing": preprocessing.to_dict(), "versions": [version("Pillow")]},
        workers=workers,
        on_broken=on_broken,
    )


@dataclass
class StoredBatches:
    """The batches of a sampler from kept values: the same images in the same order as an `ImageLoader` gives, and the same views.

    Attributes:
        source: the images.
        sampler: decides the rows of every batch.
        front: the frozen part.
        cache: where its outputs are kept.
        broken: name → message of the images left out so far.
        position: batches of the running epoch that were handed out or, having become empty, left out.
    """

    source: Source
    sampler: BatchSampler
    front: Front
    cache: FeatureCache
    broken: dict[str, str] = field(init=False, default_factory=dict)
    position: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Begin with nothing looked up."""
        self._views: dict[int, tuple[Stored, np.ndarray]] = {}

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return len(self.sampler)

    def close(self) -> None:
        """Let go of the kept values."""
        self._views = {}

    def prepare(self, epoch: int) -> None:
        """Look up the values of an epoch's view, or compute them."""
        self._view(self._view_of(epoch))

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of one epoch from batch `start` on.

        Raises:
            DataError: an image cannot be read and `on_broken` is `stop`, or none can.
        """
        stored, place = self._view(self._view_of(epoch))
        self.position = start
        for rows in self.sampler.epoch(epoch, start=start):
            readable = np.array([row for row in rows if place[row] >= 0], dtype=np.int64)
            self.position += 1
            if len(readable):
                yield self._batch(stored, place, readable)

    def _batch(self, stored: Stored, place: np.ndarray, rows: np.ndarray) -> Batch:
        kept, chosen = torch.from_numpy(stored.take(place[rows])), torch.from_numpy(rows)
        return Batch(kept, self.source.label[chosen], self.source.item[chosen], torch.zeros(len(rows), dtype=torch.long))

    def _view_of(self, epoch: int) -> int:
        return epoch % self.source.views if self.source.views else 0

    def _view(self, view: int) -> tuple[Stored, np.ndarray]:
        """Return the values of a view, and where each image's are (−1: it cannot be read)."""
        if view not in self._views:
            reader = _Reader(self.source, view, self.broken)
            stored, rows = self.cache.stored(self.front, self.source.view, reader.keys, reader.batches)
            readable = np.flatnonzero(reader.has_key)[rows]
            if not len(readable):
                raise DataError(f"no image can be read: {next(iter(self.broken.values()), 'there is none')}")
            place = np.full(len(self.source.images), -1, dtype=np.int64)
            place[readable] = np.arange(len(readable))
            self._views[view] = stored, place
        return self._views[view]


class _Reader:
    """Reads the images of one view that are not kept yet."""

    def __init__(self, source: Source, view: int, broken: dict[str, str]):
        self.source, self.view, self.broken = source, view, broken
        found = [self._key(row) for row in range(len(source.images))]
        self.has_key = np.array([key is not None for key in found], dtype=bool)
        self.keys = [key for key in found if key is not None]
        self.rows = np.flatnonzero(self.has_key)
        if not self.has_key.all():  # let the loader say why, as it does elsewhere
            list(self._loaded(np.flatnonzero(~self.has_key).tolist()))

    def batches(self, places: Sequence[int]) -> Iterator[tuple[list[int], torch.Tensor]]:
        """Yield images in batches, with their places among the keys."""
        place_of = {int(self.rows[place]): place for place in places}
        for rows, images in self._loaded(list(place_of)):
            yield [place_of[row] for row in rows], images

    def _key(self, row: int) -> bytes | None:
        # A random view is drawn from the image's number as well, see `ImageLoader`.
        extra = (int(self.source.item[row]), self.view) if self.source.views else ()
        try:
            return content_key(self.source.images, row, *extra)
        except (OSError, DataError):
            return None

    def _loaded(self, rows: list[int]) -> Iterator[tuple[list[int], torch.Tensor]]:
        source = self.source
        loader = ImageLoader(
            _Rows(source.images, rows),
            torch.arange(len(rows)),
            source.item[rows],
            transform=source.transform,
            sampler=SequentialBatchSampler(len(rows), BATCH),
            workers=source.workers,
            on_broken=source.on_broken,
        )
        try:
            for batch in loader.epoch(self.view):
                yield [rows[place] for place in batch.label.tolist()], batch.image
        except DataError:
            if source.on_broken == "stop":
                raise  # else: none of them can be read, which is known by now
        finally:
            loader.close()
            self.broken.update(loader.broken)


@dataclass(frozen=True)
class _Rows:
    """Some rows of images."""

    images: Images
    rows: list[int]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Any:
        return self.images[self.rows[row]]

    def name(self, row: int) -> str:
        return self.images.name(self.rows[row])
