"""Outputs of a frozen trunk, or of its frozen beginning, computed once and kept: keyed by weights, preprocessing and file content."""

import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kinfold.atomic import write_text
from kinfold.errors import ConfigError
from kinfold.lock import claim
from kinfold.models.frozen import Front
from kinfold.models.shards import Shards, Stored
from kinfold.modes import evaluating

log = logging.getLogger(__name__)

FORMAT = 1
SHARD_BYTES = 32 * 2**20
SHARD_SECONDS = 5.0
BATCH = 64
ABOUT, PROBE, LOCK = "about.json", "probe.json", "lock"
PROBE_NUMBERS = 4096

Compute = Callable[[Sequence[int]], Iterator[tuple[list[int], torch.Tensor]]]
"""Places of images → batches of (places that could be read, images)."""


def cache_folder(folder: str | Path | None = None) -> Path:
    """Return where features are kept: the folder given, else `$KINFOLD_CACHE`, else the user's cache folder.

    Example:
        >>> cache_folder("here")
        PosixPath('here')
    """
    if folder is not None:
        return Path(folder).expanduser()
    own = os.environ.get("KINFOLD_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(own or Path(home) / "kinfold").expanduser()


@dataclass(frozen=True)
class FeatureCache:
    """Values that a frozen part of a model gives, in one folder for each part × way of preprocessing.

    A folder's name is a hash of the part's weights, the preprocessing (and augmentation) and the number format; a row's key is one of
    the image's content, so that a changed weight, crop or file is never served an old value. Values are computed in batches of a fixed
    size, so that they do not depend on what was stored before. One process at a time computes into a folder, others wait and take
    what it made; killed at any moment, a few seconds' worth of images is computed again. Where the disk is full, the rest is kept
    in memory for this process.

    Attributes:
        folder: a path or text; by default where `cache_folder` says. Made when something is written.
        half: keep float16.
        progress: called with the number of images that are done and of those to do, while values are computed.
    """

    folder: Path = field(default_factory=cache_folder)
    half: bool = False
    progress: Callable[[int, int], object] | None = None

    def __post_init__(self) -> None:
        """Take text for a path."""
        object.__setattr__(self, "folder", cache_folder(self.folder))

    def stored(self, front: Front, view: Mapping[str, Any], keys: Sequence[bytes], compute: Compute) -> tuple[Stored, list[int]]:
        """Return the values of images, computing those that are not kept yet.

        Args:
            front: the frozen part, on its device.
            view: what is done to an image before the part sees it, as JSON values.
            keys: 16 bytes an image that are equal for equal content.
            compute: reads images, in batches of at most 64.

        Returns:
            The values, one row for each place of the second; and the places in `keys` of the images that could be read, ascending.
        """
        about = {"format": FORMAT, "part": front.part, "trunk": front.trunk_name, "weights": front.fingerprint()}
        about = {**about, "view": dict(view), "type": "float16" if self.half else "float32"}
        name = sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:24]
        place = self.folder / name
        shards = Shards(place)
        probe = _probe(front)
        if _is_other(place, probe) or shards.missing(keys):
            with claim(self.folder / f"{name}.{LOCK}", wait=True):
                _prepare(place, about, probe)
                shards = Shards(place)
                self._fill(shards, keys, front, compute)
        else:
            (place / ABOUT).touch()
        left_out = set(shards.missing(keys))
        absent = {keys[place] for place in left_out}
        rows = [row for row, key in enumerate(keys) if key not in absent]
        return shards.stored([keys[row] for row in rows]), rows

    def _fill(self, shards: Shards, keys: Sequence[bytes], front: Front, compute: Compute) -> None:
        todo = shards.missing(keys)  # anew: another process may have computed them meanwhile
        waiting: list[tuple[bytes, np.ndarray]] = []
        n_done, has_room, last = 0, True, time.monotonic()
        try:
            for places, images in compute(todo) if todo else ():
                values = _values(front, images, half=self.half)
                waiting += [(keys[place], value) for place, value in zip(places, values, strict=True)]
                n_done += len(places)
                if self.progress is not None:
                    self.progress(n_done, len(todo))
                if len(waiting) * values[0].nbytes >= SHARD_BYTES or time.monotonic() - last >= SHARD_SECONDS:
                    has_room = _put(shards, waiting, has_room=has_room)
                    waiting, last = [], time.monotonic()
        finally:  # also where somebody pressed Ctrl-C
            _put(shards, waiting, has_room=has_room)

    def entries(self) -> list[dict[str, Any]]:
        """Return what is kept, newest use first: key, trunk, part, view, rows, bytes, time of last use."""
        found = []
        for file in self.folder.glob(f"*/{ABOUT}"):
            try:
                about = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                about = {}
            shards = Shards(file.parent)
            facts = {"key": file.parent.name, "rows": shards.n_rows(), "bytes": shards.n_bytes(), "used": file.stat().st_mtime}
            found.append({**about, **facts})
        return sorted(found, key=lambda entry: -entry["used"])

    def clear(self, key: str) -> None:
        """Remove one entry; a run that reads it just now keeps what it has open."""
        with claim(self.folder / f"{key}.{LOCK}", wait=True):
            shutil.rmtree(self.folder / key, ignore_errors=True)
        (self.folder / f"{key}.{LOCK}").unlink(missing_ok=True)


def _is_other(place: Path, probe: np.ndarray) -> bool:
    """Whether a folder is missing, or its values are those of another version of the network's code: one fixed image tells."""
    try:
        old = np.array(json.loads((place / PROBE).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return True
    return old.shape != probe.shape or not np.allclose(old, probe, rtol=1e-3, atol=1e-3 * np.abs(probe).max())


def _prepare(place: Path, about: dict[str, Any], probe: np.ndarray) -> None:
    """Make the folder, dropping what another version of the code computed."""
    if place.exists() and _is_other(place, probe):
        log.warning("features in %s are those of another version of the network's code: they are computed again", place)
        shutil.rmtree(place)
    for litter in place.glob(".*.tmp*"):  # of a writer that was killed
        litter.unlink(missing_ok=True)
    try:
        write_text(place / PROBE, json.dumps([float(f"{value:.6g}") for value in probe]) + "\n")
        write_text(place / ABOUT, json.dumps(about, indent=2) + "\n")
    except OSError as error:
        log.warning("the feature cache %s cannot be written (%s)", place, error.strerror)


@contextmanager
def _as_ever(front: Front, place: torch.device) -> Iterator[None]:
    """Compute as a frozen part does, in full precision, whatever the caller is about: what is kept is for all."""
    with evaluating(front), torch.autocast(place.type, enabled=False):
        yield


@torch.no_grad()
def _values(front: Front, images: torch.Tensor, *, half: bool) -> np.ndarray:
    """Run one batch, filled up to its fixed size, since rounding depends on the size."""
    home = next(front.parameters(), torch.zeros(())).device
    n = len(images)
    padded = torch.cat([images, images[:1].expand(max(0, BATCH - n), *images.shape[1:])])
    with _as_ever(front, home):
        values = front(padded.to(home))[:n].float().cpu().contiguous().numpy()
    if not half:
        return values
    if np.abs(values).max(initial=0) > np.finfo(np.float16).max:
        raise ConfigError(f"`cache.half` cannot keep features as large as {np.abs(values).max():.3g}: set it to false.")
    return values.astype(np.float16)


@torch.no_grad()
def _probe(front: Front) -> np.ndarray:
    """Return some of what the part gives for one fixed noisy image."""
    image = torch.rand(1, 3, front.size, front.size, generator=torch.Generator().manual_seed(0)) * 2 - 1
    home = next(front.parameters(), image).device
    with _as_ever(front, home):
        return front(image.to(home)).float().cpu().numpy().ravel()[:PROBE_NUMBERS].astype(np.float64)


def _put(shards: Shards, waiting: list[tuple[bytes, np.ndarray]], *, has_room: bool) -> bool:
    """Write rows; return whether the disk took them."""
    if not waiting:
        return has_room
    try:
        shards.add([key for key, _ in waiting], np.stack([value for _, value in waiting]))
    except OSError as error:
        if has_room:
            log.warning("the feature cache cannot be written (%s): features stay in memory for this run", error.strerror or error)
        return False
    return has_room
