"""Fixtures and options shared by every test."""

import os
from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Start every test from the same random state."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def photographs() -> Path:
    """Return the folder of the photograph sets; tests that need it carry the marker `shared_data`."""
    return Path(os.environ["KINFOLD_DATA"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with a reason, what needs photographs where there are none."""
    if os.environ.get("KINFOLD_DATA"):
        return
    skip = pytest.mark.skip(reason="set KINFOLD_DATA to the folder of the photograph sets to run this")
    for item in items:
        if item.get_closest_marker("shared_data"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def tiny_photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table.csv: 8 classes of 8 noisy pictures of 24 px, six classes to train on and two to test on."""
    import numpy as np
    from PIL import Image

    folder = tmp_path_factory.mktemp("photos")
    random = np.random.default_rng(0)
    lines = ["path,label,label.kind,split"]
    for number in range(8):
        pattern = random.uniform(0, 255, (6, 6, 3)).repeat(4, axis=0).repeat(4, axis=1)
        for copy in range(8):
            name = f"{number}_{copy}.png"
            noisy = np.clip(pattern + random.normal(0, 25, pattern.shape), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(folder / name)
            lines.append(f"{name},class {number},kind {number % 2},{'train' if number < 6 else 'test'}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
