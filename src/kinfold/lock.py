"""A lock on a file between processes; the system frees it when its holder ends, however it does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None

AVAILABLE = fcntl is not None


@contextmanager
def claim(file: Path, *, wait: bool) -> Iterator[bool]:
    """Hold a lock inside the block; gives whether it was had (always, where the system has no such locks).

    Args:
        file: made if it is missing, and left there.
        wait: until another holder is done; otherwise give `False` at once.
    """
    if fcntl is None:
        yield True
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True  # closing the file frees the lock
