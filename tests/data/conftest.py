"""Pictures that the tests of data sets, loader and workers share."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

N_PICTURES = 12


@pytest.fixture(scope="session")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return twelve files of noise, 18 × 14 pixels; not to be changed."""
    folder = tmp_path_factory.mktemp("images")
    files = [folder / f"{row}.png" for row in range(N_PICTURES)]
    for row, file in enumerate(files):
        pixels = np.random.default_rng(row).integers(0, 256, (14, 18, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(file)
    return files
