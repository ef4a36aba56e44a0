"""The tables of a grid: each is read once, and its protocols are worked out once."""

from collections.abc import Sequence
from typing import Any

from kinfold.build import build_table
from kinfold.comparison.protocol import protocol_of
from kinfold.config import Config, DataSettings
from kinfold.data.table import Table


class Tables:
    """Reads tables when they are first asked for, and keeps them."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}
        self._protocols: dict[tuple[object, ...], dict[str, Any]] = {}

    def table(self, data: DataSettings) -> Table:
        """Return the table of these settings, with the classes that they hold out."""
        key = _key(data)
        if key not in self._tables:
            self._tables[key] = build_table(data)
        return self._tables[key]

    def protocol(self, config: Config, levels: Sequence[str]) -> dict[str, Any]:
        """Return the protocol of a configuration, but for the selection of the epoch."""
        key = (_key(config.data), config.evaluation.model_dump_json(), *levels)
        if key not in self._protocols:
            found = protocol_of(self.table(config.data), config.evaluation, levels=levels, n_evaluations=0)
            self._protocols[key] = {name: value for name, value in found.items() if name != "selection"}
        return self._protocols[key]


def _key(data: DataSettings) -> str:
    """Return what tells one table from another: all settings but those of how its images are cut."""
    return data.model_dump_json(exclude={"size", "resize", "crop_ratio"})
