"""The record of a finished experiment: the last file that is written into its run folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kinfold.atomic import write_text
from kinfold.errors import DataError

VERSION = 1


@dataclass(frozen=True)
class Record:
    """What is known of a finished experiment.

    Attributes:
        identity: hash of the settings; see `identity_hash`.
        config: all settings.
        split: that was measured.
        protocol: how; see `protocol_of`. Empty if nothing was measured.
        metrics: level → metric → mean.
        seconds: that reading, training and measuring took.
        resumed: the run was interrupted before, so that `seconds` counts its last part only.
        n_steps: updates.
    """

    identity: str
    config: Mapping[str, Any]
    split: str
    protocol: Mapping[str, Any]
    metrics: Mapping[str, Mapping[str, float]]
    seconds: float
    resumed: bool
    n_steps: int


def record_file(folder: Path) -> Path:
    """Return where a run keeps its record."""
    return folder / "record.json"


def write_record(folder: Path, record: Record) -> None:
    """Write the record, whole or not at all."""
    write_text(record_file(folder), json.dumps({"version": VERSION, **asdict(record)}, indent=2) + "\n")


def read_record(folder: Path) -> Record | None:
    """Read the record; `None` if there is none: the experiment is not finished.

    Raises:
        DataError: the file is broken or of another version.
    """
    file = record_file(folder)
    if not file.is_file():
        return None
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        if values.pop("version") != VERSION:
            raise ValueError(f"it is not of version {VERSION}")
        return Record(**values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file} cannot be read as the record of an experiment ({error}): delete it to measure again.") from error
