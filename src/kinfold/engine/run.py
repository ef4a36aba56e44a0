"""The run folder: resolved configuration, environment, log, metrics, checkpoints."""

import json
import math
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kinfold.atomic import write_text
from kinfold.engine.checkpoint import load_checkpoint
from kinfold.errors import ConfigError, DataError

UNTRAINED = ("evaluation", "run")
UNTRAINED_KEYS = {
    "data": ("root",),  # the images' fingerprint stands for it
    "batches": ("workers",),
    "cache": ("folder", "use"),
    "train": ("accelerator", "checkpoint_minutes", "checkpoint_steps", "log_every"),
}
_PACKAGES = ("kinfold", "torch", "torchvision", "timm", "numpy", "Pillow", "lightning-fabric", "scikit-learn")


class Run:
    """One training run's folder.

    `config.json` (resolved settings), `environment.json`, `log.jsonl` (one row of numbers a line), `metrics.json` (the last
    evaluation of each kind), `checkpoints/last.pt` and `checkpoints/best.pt`, `model/` (the finished model).

    Args:
        folder: where; made when something is written.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    @property
    def last(self) -> Path:
        """The newest checkpoint."""
        return self.folder / "checkpoints" / "last.pt"

    @property
    def best(self) -> Path:
        """The checkpoint of the best validation value."""
        return self.folder / "checkpoints" / "best.pt"

    @property
    def model(self) -> Path:
        """The finished model's folder; it exists when training is done."""
        return self.folder / "model"

    @property
    def _config_file(self) -> Path:
        return self.folder / "config.json"

    @property
    def _environment_file(self) -> Path:
        return self.folder / "environment.json"

    @property
    def log_file(self) -> Path:
        """One JSON object a line."""
        return self.folder / "log.jsonl"

    @property
    def exists(self) -> bool:
        """Whether the folder was made by training."""
        return self._environment_file.is_file() and self._config_file.is_file()

    def open(self, config: dict[str, Any]) -> bool:
        """Begin or go on: write the configuration and the environment, or check that they are those of the run found here.

        A run that has not made one update yet is begun anew, whatever its configuration. What changes nothing that is trained may
        differ: `evaluation`, `run`, `data.root`, the number of workers, how often is logged and saved, the accelerator.

        Returns:
            True if there is a checkpoint to resume from.

        Raises:
            ConfigError: the folder holds a run of another configuration; the message names the keys that differ.
        """
        config = json.loads(json.dumps(config))
        if self.exists:
            differing = sorted(_differences(_trained_by(self.config()), _trained_by(config)))
            if differing and self._is_begun():
                raise ConfigError(
                    f"{self.folder} holds a run of another configuration (differs in {', '.join(differing)}): "
                    "choose another run folder, or delete this one to start again."
                )
            if differing:
                for file in (self.last, self.best, self.log_file):
                    file.unlink(missing_ok=True)
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise ConfigError(f"{self.folder} is not empty and holds no run: choose another run folder.")
        if not self.last.exists():
            write_text(self._environment_file, json.dumps(environment(), indent=2) + "\n")
        write_text(self._config_file, json.dumps(config, indent=2) + "\n")
        for litter in self.last.parent.glob(".*.tmp*"):  # of a save that was killed
            litter.unlink(missing_ok=True)
        return self.last.exists()

    def _is_begun(self) -> bool:
        return self.last.exists() and load_checkpoint(self.last)["progress"]["step"] > 0

    def config(self) -> dict[str, Any]:
        """Return the resolved configuration.

        Raises:
            DataError: there is none here.
        """
        if not self.exists:
            raise DataError(f"{self.folder} holds no run: name a folder that `train` made.")
        return json.loads(self._config_file.read_text(encoding="utf-8"))

    def log(self, row: dict[str, Any]) -> None:
        """Append one row; numbers that are not finite become null, as JSON has no others."""
        plain = {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in row.items()}
        with self.log_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(plain) + "\n")

    def log_size(self) -> int:
        """Return the log's length in bytes, after bringing it to the disk: a checkpoint remembers it."""
        if not self.log_file.exists():
            return 0
        with self.log_file.open("ab") as file:
            os.fsync(file.fileno())
            return file.tell()

    def cut_log(self, size: int) -> None:
        """Cut the log's rows past a checkpoint: they are trained, and written, again."""
        if self.log_file.exists():
            os.truncate(self.log_file, min(size, self.log_file.stat().st_size))

    def rows(self) -> list[dict[str, Any]]:
        """Return the log's rows."""
        if not self.log_file.exists():
            return []
        return [json.loads(line) for line in self.log_file.read_text(encoding="utf-8").splitlines()]

    def write_metrics(self, name: str, values: Any) -> None:
        """Put `values` under `name` into metrics.json and keep what is there under other names."""
        write_text(self.folder / "metrics.json", json.dumps({**self.metrics(), name: values}, indent=2) + "\n")

    def add_to_metrics(self, name: str, values: dict[str, Any]) -> None:
        """Add entries to what is there under `name`."""
        self.write_metrics(name, {**self.metrics().get(name, {}), **values})

    def metrics(self) -> dict[str, Any]:
        """Return what was measured so far, by kind."""
        file = self.folder / "metrics.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def environment() -> dict[str, Any]:
    """Return what a reader needs to judge a run's numbers: versions, machine, threads, command."""
    import torch

    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return {
        "python": platform.python_version(),
        "packages": versions,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
    }


def _trained_by(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration without what changes nothing that is trained."""
    kept: dict[str, Any] = {}
    for key, value in config.items():
        if key in UNTRAINED:
            continue
        if key == "recipe":
            kept[key] = _trained_by(value)
        elif key in UNTRAINED_KEYS:
            kept[key] = {name: each for name, each in value.items() if name not in UNTRAINED_KEYS[key]}
        else:
            kept[key] = value
    return kept


def _differences(old: Any, new: Any, prefix: str = "") -> set[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = set(old) | set(new)
        return {name for key in keys for name in _differences(old.get(key), new.get(key), f"{prefix}.{key}" if prefix else key)}
    return set() if old == new else {f"`{prefix}`"}
