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
