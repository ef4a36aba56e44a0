"""What a command's MODEL may be: a run folder, a model folder, or the name of a trunk."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError
from kinfold.models.embedder import Embedder


def is_run(target: str | Path) -> bool:
    """Return whether a folder was made by `train`."""
    return (Path(target) / "environment.json").is_file()


def load_model(target: str, *, size: int | None = None, resize: Literal["crop", "squash"] | None = None) -> Embedder:
    """Load a trained model, or make the untrained features of a trunk by its name.

    Raises:
        DataError: a run that is not finished, or a folder that holds no model.
        ConfigError: an unknown trunk, or `size` for a trained model, which has its own.
    """
    folder = Path(target)
    if not folder.is_dir():
        if folder.suffix or len(folder.parts) > 1:
            raise DataError(f"{target} is no folder: name a run, a model folder, or a trunk such as tf_efficientnet_lite0.")
        embedder = Embedder(target, None, size=size)
        if resize is not None:
            embedder.preprocessing = replace(embedder.preprocessing, resize=resize)
        return embedder
    if size is not None or resize is not None:
        raise ConfigError(
            "`size` and `resize` are for a trunk's name: a trained model keeps the preprocessing it was trained with."
        )
    if is_run(folder):
        run = Run(folder)
        if not run.model.is_dir():
            raise DataError(f"{target} is not finished: run its `kinfold train` command again, it goes on where it stopped.")
        folder = run.model
    return Embedder.from_pretrained(folder)
