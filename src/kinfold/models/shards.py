"""Rows of numbers under keys, in files that are only ever added: memory-mapped, and whole or not there."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kinfold.atomic import atomic_path

KEY_BYTES = 16
KEYS, VALUES = ".keys.npy", ".values.npy"


@dataclass(frozen=True)
class Stored:
    """Rows that lie in several arrays (files mapped into memory, or arrays that no disk had room for).

    Attributes:
        arrays: each (rows, *shape).
        array: which of them holds each row.
        place: where in it.
    """

    arrays: tuple[np.ndarray, ...]
    array: np.ndarray
    place: np.ndarray

    def __len__(self) -> int:
        return len(self.array)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return some rows, (len(rows), *shape), in float32."""
        found = np.empty((len(rows), *self.arrays[0].shape[1:]), dtype=np.float32)
        array, place = self.array[rows], self.place[rows]
        for number in np.unique(array):
            mine = array == number
            found[mine] = self.arrays[number][place[mine]]
        return found


class Shards:
    """A folder of files `<name>.values.npy` (rows, *shape) with `<name>.keys.npy` (rows, 16 bytes).

    A file's keys are written after its values, so that values without keys are those of a writer that was killed: they do not count.
    Writers only add files, so that readers need no lock.

    Args:
        folder: made when something is written.

    Example:
        >>> import tempfile
        >>> shards = Shards(Path(tempfile.mkdtemp()))
        >>> shards.add([b"a" * 16, b"b" * 16], np.array([[1.0], [2.0]], dtype=np.float32))
        >>> shards.stored([b"b" * 16]).take(np.array([0])).tolist()
        [[2.0]]
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._read: set[str] = set()
        self._arrays: list[np.ndarray] = []
        self._where: dict[bytes, tuple[int, int]] = {}

    def missing(self, keys: Sequence[bytes]) -> list[int]:
        """Return the places in `keys` of those that are not stored, after a look at what other writers added; each key once."""
        self._look()
        first = {key: place for place, key in reversed(list(enumerate(keys)))}
        return sorted(place for key, place in first.items() if key not in self._where)

    def stored(self, keys: Sequence[bytes]) -> Stored:
        """Return the rows of these keys.

        Raises:
            KeyError: a key is not stored.
        """
        self._look()
        where = np.array([self._where[key] for key in keys], dtype=np.int64).reshape(len(keys), 2)
        return Stored(tuple(self._arrays), where[:, 0], where[:, 1])

    def add(self, keys: Sequence[bytes], values: np.ndarray) -> None:
        """Write rows; where the disk refuses (`OSError`), they are still here for this process, and the error goes on."""
        name = secrets.token_hex(8)
        try:
            _write(self.folder / f"{name}{VALUES}", values)
            _write(self.folder / f"{name}{KEYS}", np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_BYTES))
        except OSError:
            (self.folder / f"{name}{VALUES}").unlink(missing_ok=True)
            self._hold(keys, values)
            raise

    def n_bytes(self) -> int:
        """Return what the files take."""
        return sum(file.stat().st_size for file in self.folder.glob("*.npy"))

    def n_rows(self) -> int:
        """Return how many rows are stored."""
        self._look()
        return len(self._where)

    def _look(self) -> None:
        for file in sorted(self.folder.glob(f"*{KEYS}")):
            name = file.name.removesuffix(KEYS)
            if name in self._read:
                continue
            self._read.add(name)
            pair = _mapped(self.folder, name)
            if pair is not None:
                keys, values = pair
                flat = keys.tobytes()
                self._hold([flat[at : at + KEY_BYTES] for at in range(0, len(flat), KEY_BYTES)], values)

    def _hold(self, keys: Sequence[bytes], values: np.ndarray) -> None:
        number = len(self._arrays)
        self._arrays.append(values)
        self._where.update({key: (number, row) for row, key in enumerate(keys)})


def _write(file: Path, array: np.ndarray) -> None:
    with atomic_path(file) as temporary, temporary.open("wb") as handle:
        np.save(handle, array, allow_pickle=False)


def _mapped(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Map one file's rows; what is gone, cut off or damaged counts as not stored."""
    try:
        keys = np.load(folder / f"{name}{KEYS}", allow_pickle=False)
        values = np.load(folder / f"{name}{VALUES}", mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    is_whole = keys.ndim == 2 and keys.dtype == np.uint8 and keys.shape[1] == KEY_BYTES and len(keys) == len(values)
    return (keys, values) if is_whole else None
