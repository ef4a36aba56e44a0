"""Images, transforms and a batch sampler → batches of (image, label, item, view)."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from kinfold.data.batch_sampler import BatchSampler
from kinfold.data.datasets import Images
from kinfold.data.transforms import Transform
from kinfold.data.views import Loaded, Views, stacked
from kinfold.data.workers import check_sendable, quiet, started, stop
from kinfold.errors import ConfigError, DataError, ShapeError
from kinfold.records import Batch

log = logging.getLogger(__name__)

Key = tuple[int, int]


@dataclass(eq=False)
class ImageLoader:
    """Batches of views, epoch by epoch; the same bits for any number of workers and any way of starting them.

    Augmentation is decided by (seed, epoch, item, view): the global generators are seeded for the one call of the transform and
    put back. Workers live across epochs, use one thread each, and never see Ctrl-C. One epoch can be read at a time.

    Attributes:
        images: `ImageFiles` or `DatasetImages`.
        label: class number of every row.
        item: number of every row in the data table; `None` counts the rows.
        transform: image → floating-point tensor (channels, height, width); a sequence makes one view of each image with each.
        sampler: decides the rows of every batch.
        workers: processes that read ahead; 0 reads in the main process.
        start_method: `fork`, `spawn` or `forkserver`; `None` is Python's own choice (fork on Linux up to Python 3.13). All but
            `fork` need transforms that survive pickling and, in scripts, the line `if __name__ == "__main__":`.
        seed: of the augmentation.
        views: how many random views there are of each image: epoch e shows view e mod `views`. `None`: a fresh one each epoch.
        on_broken: `stop` at the first image that cannot be read, or `skip` it.
        broken: name → message of the images left out so far.
        position: number of batches of the running epoch that were handed out or, having become empty, left out; pass it as
            `start` to go on after the batch that came last.

    Raises:
        ShapeError: there is not one label and one item for every image, or the sampler is for another number of rows.
        ConfigError: a setting is unknown or out of range.

    Example:
        >>> from kinfold.data.datasets import DatasetImages
        >>> from kinfold.data.samplers import SequentialBatchSampler
        >>> images = DatasetImages([(torch.zeros(3, 4, 4), name) for name in "abb"])
        >>> loader = ImageLoader(images, images.label, transform=torch.clone, sampler=SequentialBatchSampler(3, 2))
        >>> [batch.label.tolist() for batch in loader.epoch(0)]
        [[0, 1], [1]]
    """

    images: Images
    label: Tensor
    item: Tensor | None = None
    _: KW_ONLY
    transform: Transform | Sequence[Transform]
    sampler: BatchSampler
    workers: int = 0
    start_method: Literal["fork", "spawn", "forkserver"] | None = None
    seed: int = 0
    views: int | None = None
    on_broken: Literal["stop", "skip"] = "stop"
    broken: dict[str, str] = field(init=False, default_factory=dict)
    position: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Check the settings and prepare the processes, which start with the first epoch."""
        self._item = torch.arange(len(self.images)) if self.item is None else self.item
        self._check()
        self._transforms = tuple(self.transform) if isinstance(self.transform, Sequence) else (self.transform,)
        self._keys = _Keys()
        self._turn = 0
        self._loader: DataLoader | None = None

    def __len__(self) -> int:
        """Return the number of batches of an epoch, if no batch becomes empty by skipping."""
        return len(self.sampler)

    def prepare(self, epoch: int) -> None:
        """Do nothing: images are read as they are wanted."""

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Batch]:
        """Yield the batches of one epoch from batch `start` on, equal to those of an epoch read from its beginning.

        Raises:
            DataError: an image cannot be read and `on_broken` is `stop`, or no image of the epoch can be read.
            ConfigError: `start` or `epoch` is out of range, or the transform's output does not fit together.
        """
        return self._batches(epoch, start, self.sampler.epoch(epoch, start=start))

    def close(self) -> None:
        """End the worker processes; a later epoch starts new ones."""
        if self._loader is not None:
            stop(self._loader)
            self._loader = None

    def _batches(self, epoch: int, start: int, batches: Iterator[list[int]]) -> Iterator[Batch]:
        self._turn += 1
        turn = self._turn
        turn_of_views = epoch if self.views is None else epoch % self.views
        self._keys.now = ([(turn_of_views, row) for row in rows] for rows in batches)
        self.position, first = start, True
        try:
            ahead = started(self._data_loader())
            while (loaded := self._next(ahead, turn)) is not None:
                self.position += 1
                batch = self._batch(loaded)
                if batch is not None:
                    first = False
                    yield batch
        except GeneratorExit:
            raise
        except BaseException:
            self.close()
            raise
        if first and start == 0:
            raise DataError(f"no image of epoch {epoch} can be read: {next(iter(self.broken.values()))}")

    def _next(self, ahead: Iterator[Loaded], turn: int) -> Loaded | None:
        if turn != self._turn:
            raise ConfigError("another epoch of this loader was begun: read one epoch at a time, or make a second loader")
        return next(ahead, None)

    def _batch(self, loaded: Loaded) -> Batch | None:
        if loaded.fault:
            raise ConfigError(loaded.fault)
        for row, message in loaded.broken:
            if self.on_broken == "stop":
                raise DataError(f'{message} (`on_broken = "skip"` leaves such images out)')
            if self.images.name(row) not in self.broken:
                log.warning("left out: %s", message)
            self.broken[self.images.name(row)] = message
        if loaded.image is None:
            return None
        rows, n_views = torch.tensor(loaded.rows), len(self._transforms)
        return Batch(
            image=loaded.image,
            label=self.label[rows].repeat(n_views),
            item=self._item[rows].repeat(n_views),
            view=torch.arange(n_views).repeat_interleave(len(rows)),
        )

    def _data_loader(self) -> DataLoader:
        if self._loader is None:
            if self.workers:
                check_sendable(self._transforms, start_method=self.start_method)
            self._loader = DataLoader(
                Views(self.images, self._transforms, item=self._item.numpy(), seed=self.seed),
                batch_sampler=self._keys,
                num_workers=self.workers,
                collate_fn=stacked,
                pin_memory=torch.cuda.is_available(),
                worker_init_fn=quiet,
                multiprocessing_context=self.start_method if self.workers else None,
                # Its own, since the loader draws from the global one otherwise.
                generator=torch.Generator(),
                persistent_workers=self.workers > 0,
            )
        return self._loader

    def _check(self) -> None:
        n = len(self.images)
        for name, column in (("label", self.label), ("item", self._item)):
            if column.shape != (n,):
                raise ShapeError(f"`{name}` has shape {tuple(column.shape)}, there are {n} images: give one whole number a row")
        if self.sampler.n_rows != n:
            raise ShapeError(f"the sampler is for {self.sampler.n_rows} rows, there are {n} images")
        if self.on_broken not in ("stop", "skip"):
            raise ConfigError(f"on_broken = {self.on_broken!r}: use 'stop' or 'skip'")
        if self.views is not None and self.views < 1:
            raise ConfigError(f"views = {self.views}: give the number of views of each image, or None for a fresh one each epoch")
        if self.workers < 0:
            raise ConfigError(f"workers = {self.workers}: use 0 to read in the main process, or the number of processes")


class _Keys:
    """The keys of the epoch that is read now: what the data loader takes for its batch sampler."""

    def __init__(self) -> None:
        self.now: Iterator[list[Key]] = iter(())

    def __iter__(self) -> Iterator[list[Key]]:
        return self.now
