"""What a run's settings are, apart from those that change no number."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from kinfold.config import Config
from kinfold.errors import ConfigError

SEED = ("seed", "recipe.seed")
_CHANGES_NOTHING = {
    "run",
    "data.root",  # the images' hash stands for it
    "data_fingerprint",
    "batches.workers",
    "cache.folder",
    "cache.use",
    "train.accelerator",
    "train.checkpoint_minutes",
    "train.checkpoint_steps",
    "train.log_every",
    "evaluation.after_training",
    "evaluation.keep_embeddings",
    "evaluation.memory",
}
_DESCRIBED = ("embedder", "objective_object")
_SHOWN = 60


def identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as dotted key → value, without what changes no number.

    Settings that are missing (the run is older than they are) count as their defaults.

    Args:
        config: of a run folder (`Run.config()`), or `Config.model_dump(mode="json")`.

    Example:
        >>> found = identity({"run": "a", "data": {"root": "photos"}, "train": {"epochs": 3}})
        >>> found["train.epochs"], found["model.dim"], "run" in found
        (3, 128, False)
    """
    if "data" in config:
        known = {key: value for key, value in config.items() if key in Config.model_fields}
        try:
            config = Config(**{"run": "", **known}).model_dump(mode="json")
        except ConfigError:  # of another version: compared as it is written
            config = {key: value for key, value in config.items() if key not in _DESCRIBED}
    return {key: value for key, value in flat(config).items() if key.removeprefix("recipe.") not in _CHANGES_NOTHING}


def identity_hash(config: Mapping[str, Any]) -> str:
    """Return 64 hexadecimal digits that are equal exactly for equal identities."""
    return hashlib.sha256(json.dumps(identity(config), sort_keys=True).encode()).hexdigest()


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Return the dotted keys whose values differ between two flat mappings, sorted."""
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def described(one: Mapping[str, Any], other: Mapping[str, Any], keys: list[str]) -> str:
    """Return keys with both values, shortened, for a message.

    Example:
        >>> described({"model.dim": 64}, {"model.dim": 128}, ["model.dim"])
        '`model.dim` (64, 128)'
    """
    return ", ".join(f"`{key}` ({_short(one.get(key))}, {_short(other.get(key))})" for key in keys)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested mapping as dotted key → value.

    Example:
        >>> flat({"model": {"dim": 64}, "seed": 0})
        {'model.dim': 64, 'seed': 0}
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
