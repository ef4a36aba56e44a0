"""What a command's MODEL may be: a run folder, a model folder, or the name of a trunk."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError
from kinfold.models.embedder import Embedder


def load_model(
    target: str, *, size: int | None = None, resize: Literal["crop", "squash"] | None = None, device: str | None = None
) -> Embedder:
    """Load a trained model, or make the untrained features of a trunk by its name, on the accelerator if there is one.

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
        return _placed(embedder, device)
    if size is not None or resize is not None:
        raise ConfigError(
            "`size` and `resize` are for a trunk's name: a trained model keeps the preprocessing it was trained with."
        )
    run = Run(folder)
    if run.exists:
        if not run.model.is_dir():
            raise DataError(f"{target} is not finished: run its `kinfold train` command again, it goes on where it stopped.")
        folder = run.model
    return _placed(Embedder.from_pretrained(folder), device)


def _placed(embedder: Embedder, device: str | None) -> Embedder:
    name = device or ("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
    try:
        return embedder.to(torch.device(name))
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device {name}: {str(error).splitlines()[0]}") from None
