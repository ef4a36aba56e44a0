"""A model on disk: one folder of safetensors and JSON, checked when read; nothing in it is executed."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kinfold.atomic import atomic_path
from kinfold.errors import ConfigError, DataError
from kinfold.models.card import model_card
from kinfold.models.class_names import checked_class_names
from kinfold.settings import Settings

FORMAT_VERSION = 1
CARD, LABELS, WEIGHTS, CONFIG = "README.md", "labels.json", "model.safetensors", "config.json"


class SavedTrunk(Settings):
    """What makes the trunk again."""

    name: str
    is_custom: bool
    size: int
    n_features: int


class SavedConfig(Settings):
    """The content of `config.json`."""

    format_version: int = FORMAT_VERSION
    kinfold_version: str = version("kinfold")
    trunk: SavedTrunk
    pool: str
    dim: int | None
    layer_norm: bool
    preprocessing: Mapping[str, object]
    fingerprint: str


@dataclass(frozen=True)
class SavedModel:
    """What a folder holds.

    Attributes:
        config: settings and fingerprint.
        tensors: the state dict.
        classes: names of the training classes, in the order of their numbers.
    """

    config: SavedConfig
    tensors: Mapping[str, Tensor]
    classes: list[str] | list[int] | None


def write(saved: SavedModel, folder: str | PathLike[str], *, card: Mapping[str, object]) -> None:
    """Write all files beside their places, then move them in, the weights last: their fingerprint shows a mixture.

    Raises:
        ConfigError: the card has unknown entries, or the tensors mix floating-point types.
        DataError: the classes cannot be kept exactly, or the folder is a file.
    """
    from safetensors.torch import save

    if len(_float_types(saved.tensors)) > 1:
        raise ConfigError(f"the model mixes {_float_types(saved.tensors)}: bring it to one type first, e.g. embedder.float().")
    # Copies part what shares memory, and lay out in rows what was `channels_last`.
    tensors = {name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in saved.tensors.items()}
    config = saved.config.model_dump()
    files = {
        WEIGHTS: save(tensors, metadata={"format": "pt"}),
        LABELS: _json({"classes": checked_class_names(saved.classes)}),
        CARD: model_card(config, saved.classes, card).encode(),
        CONFIG: _json(config),
    }
    _replace_together(Path(folder), files)


def read(folder: str | PathLike[str]) -> SavedModel:
    """Read and check a folder.

    Raises:
        DataError: a file is missing, broken, or of a newer version.
        ConfigError: the configuration has unknown, missing or wrong entries.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"model folder {str(folder)!r} does not exist: give the folder that `save_pretrained` wrote.")
    missing = [name for name in (CONFIG, LABELS, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise DataError(f"model folder {str(folder)!r} lacks {', '.join(missing)}: copy the whole folder.")
    config = _read_config(folder / CONFIG)
    labels = _read_json(folder / LABELS)
    if set(labels) != {"classes"}:
        raise DataError(f"{str(folder / LABELS)!r} must hold `classes` and nothing else, not {sorted(labels)}.")
    try:
        tensors = load_file(folder / WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{str(folder / WEIGHTS)!r} is broken: {error}. Copy the folder again.") from error
    return SavedModel(config, tensors, checked_class_names(labels["classes"]))


def fill(module: nn.Module, saved: SavedModel, folder: str | PathLike[str]) -> None:
    """Copy saved tensors into a module, which takes over their floating-point type.

    Raises:
        DataError: names, shapes or types of the tensors are not the module's.
    """
    where = f"model folder {str(folder)!r}"
    types = _float_types(saved.tensors)
    if len(types) == 1:
        module.to(types[0])
    own = module.state_dict()
    for verb, names in (("lack", own.keys() - saved.tensors.keys()), ("have unknown", saved.tensors.keys() - own.keys())):
        if names:
            raise DataError(
                f"{where}: the weights {verb} {len(names)} tensors, such as `{min(names)}`: they are of another architecture."
            )
    for name, tensor in sorted(saved.tensors.items()):
        if (tensor.shape, tensor.dtype) != (own[name].shape, own[name].dtype):
            got, wanted = (f"{tuple(t.shape)} {t.dtype}" for t in (tensor, own[name]))
            raise DataError(f"{where}: `{name}` is {got}, but the configuration asks for {wanted}.")
    module.load_state_dict(dict(saved.tensors))


def _float_types(tensors: Mapping[str, Tensor]) -> list[torch.dtype]:
    return sorted({tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}, key=str)


def _read_config(path: Path) -> SavedConfig:
    values = _read_json(path)
    found = values.get("format_version")
    if isinstance(found, int) and found > FORMAT_VERSION:
        raise DataError(
            f"{str(path)!r} is of format {found}, this Kinfold reads up to {FORMAT_VERSION}: pip install --upgrade kinfold."
        )
    try:
        if found is None:
            raise ConfigError("`format_version` is missing: this is no Kinfold model.")
        return SavedConfig(**values)
    except ConfigError as error:
        raise ConfigError(f"{str(path)!r}: {error}") from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{str(path)!r} is broken: {error}. Copy the folder again.") from error
    if not isinstance(values, dict):
        raise DataError(f"{str(path)!r} is broken: it must hold one JSON object.")
    return values


def _json(values: Mapping[str, object]) -> bytes:
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


def _replace_together(folder: Path, files: Mapping[str, bytes]) -> None:
    """Move files into a folder only after all are written beside their places; the first file moves last."""
    try:
        with ExitStack() as places:
            waiting = {name: places.enter_context(atomic_path(folder / name)) for name in files}
            for name, content in files.items():
                waiting[name].write_bytes(content)
    except FileExistsError:
        raise DataError(f"{str(folder)!r} is a file: give a folder.") from None
