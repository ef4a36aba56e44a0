"""Grid files on tiny pictures, and a look at what their runs leave behind."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kinfold.comparison.record import record_file

BASE = """
[base]
data = {{ root = "{photos}", size = 24 }}
model = {{ trunk = "convnet", dim = 16 }}
batches = {{ batch_size = 12, crop_scale = [0.9, 1.0] }}
optimizer = {{ learning_rate = 1e-3 }}
train = {{ epochs = 1 }}
"""
VARIANT = """
[variants.dim_8]
model.dim = 8
"""


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def grid_file(place, tiny_photos) -> Callable[..., Path]:
    """Return a writer of grid files: what stands above the base, and what stands below it."""

    def write(above: str = "seeds = 2", below: str = VARIANT, *, name: str = "tiny.toml", photos: Path = tiny_photos) -> Path:
        file = place / name
        file.write_text(above + BASE.format(photos=photos.as_posix()) + below, encoding="utf-8")
        return file

    return write


def records(folder: Path) -> dict[str, int]:
    """Return when each record below a folder was written, in nanoseconds."""
    return {
        file.relative_to(folder).as_posix(): file.stat().st_mtime_ns for file in sorted(folder.rglob(record_file(folder).name))
    }


def flat(text: str) -> str:
    return re.sub(r"[\s│]+", " ", text)
