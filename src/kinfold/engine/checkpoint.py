"""Everything needed to resume bit by bit, in one file that loads with `weights_only=True`."""

from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile

import torch

from kinfold.atomic import atomic_path
from kinfold.errors import TrainingError

FORMAT = 1


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a state of tensors, numbers, strings, lists and dictionaries; the old file stays until the new one is whole."""
    with atomic_path(path) as temporary:
        torch.save({"format": FORMAT, **state}, temporary)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint, executing nothing.

    Raises:
        TrainingError: the file is broken or of another format.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, ValueError, KeyError, AttributeError, UnpicklingError, BadZipFile) as error:
        raise TrainingError(f"{path} cannot be read as a checkpoint ({error}): delete it to start the run again.") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise TrainingError(f"{path} is no checkpoint of format {FORMAT}: resume it with the version of Kinfold that wrote it.")
    return state
