"""Writes that are complete or did not happen: temporary file, fsync, rename."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; on leaving without an error it replaces `path`, else it is removed.

    Example:
        >>> folder = Path(tempfile.mkdtemp())
        >>> with atomic_path(folder / "a.txt") as temporary:
        ...     _ = temporary.write_text("whole")
        >>> (folder / "a.txt").read_text()
        'whole'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp{path.suffix}")
    try:
        yield temporary
        with temporary.open("r+b") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def write_text(path: str | Path, text: str) -> None:
    """Write a whole text file, or leave the old one."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def atomic_folder(path: str | Path, *, sync: bool = True) -> Iterator[Path]:
    """Give a temporary folder beside `path`; on leaving without an error it takes the place of `path`, else it is removed.

    Args:
        path: the folder to make or replace.
        sync: bring every file to the disk first; False for many files that can be made again.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    try:
        temporary.chmod(0o755)
        yield temporary
        for file in temporary.rglob("*") if sync else ():
            if file.is_file():
                with file.open("r+b") as written:
                    os.fsync(written.fileno())
        _replace_folder(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _sync_folder(path.parent)


def _replace_folder(new: Path, path: Path) -> None:
    if not path.exists():
        os.replace(new, path)
        return
    # A folder cannot be renamed over a full one: the old one steps aside for a moment and comes back if the rename fails.
    aside = path.with_name(f".{path.name}.{os.getpid()}.old")
    os.replace(path, aside)
    try:
        os.replace(new, path)
    except OSError:
        os.replace(aside, path)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
