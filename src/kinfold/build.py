"""Images and model from a configuration; `build_objective` makes the third part."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from kinfold.config import Config, DataSettings
from kinfold.errors import ConfigError, DataError

if TYPE_CHECKING:
    from kinfold.data.table import Table
    from kinfold.models.embedder import Embedder


GLYPHS = "kinfold:glyphs"
"""As `data.root`: the demo's characters, drawn into the cache folder when they are first wanted."""


def build_table(data: DataSettings) -> "Table":
    """Read the table; put a taxonomy's levels on it, and keep classes for test and validation, where the configuration asks for it.

    Raises:
        ConfigError: `data.test_share` for a table that has test images, or an environment variable in a path that is not set.
        DataError: the table or the taxonomy cannot be read, or the taxonomy lacks classes of the table.
    """
    from kinfold.data.splits import hold_out_classes, split_classes

    table = _read(data.root)
    if data.taxonomy is not None:
        table = _with_taxonomy(table, data.taxonomy)
    if data.test_share is not None:
        if len(table.split_rows("test")):
            raise ConfigError(f"`data.test_share` = {data.test_share}: {data.root} has a test split of its own; leave it out.")
        table = split_classes(table, train=1 - data.test_share)
    return hold_out_classes(table, every=data.hold_out_every) if data.hold_out_every else table


def _read(root: str) -> "Table":
    if root == GLYPHS:
        from kinfold.data.glyphs import write_glyphs
        from kinfold.models.feature_cache import cache_folder

        return write_glyphs(cache_folder() / "glyphs")
    from kinfold.data.read import read_table

    return read_table(_expanded(root, "data.root"))


def _with_taxonomy(table: "Table", taxonomy: str) -> "Table":
    from kinfold.data.hierarchies import with_hierarchy
    from kinfold.data.taxonomy_file import read_hierarchy

    file = _expanded(taxonomy, "data.taxonomy")
    hierarchy = read_hierarchy(file)
    try:
        return with_hierarchy(table, hierarchy)
    except DataError as error:
        raise DataError(f"`data.taxonomy` = {file!r}: {error}") from error


def _expanded(root: str, key: str) -> str:
    """Put environment variables into a path.

    Raises:
        ConfigError: one of them is not set.
    """
    path = os.path.expandvars(os.path.expanduser(root))
    if "$" in path:
        raise ConfigError(f"`{key}` = {root!r}: set that environment variable, or write the path itself ({key}=PATH).")
    return path


def build_embedder(config: Config) -> "Embedder":
    """Make the model, its new weights drawn from the configuration's seed."""
    from kinfold.models.embedder import Embedder

    model, data = config.model, config.data
    embedder = Embedder(
        model.trunk,
        model.dim,
        pool=model.pool,
        size=data.size,
        pretrained=model.pretrained,
        layer_norm=model.layer_norm,
        seed=config.seed,
    )
    chosen = {"resize": data.resize, "crop_ratio": data.crop_ratio}
    embedder.preprocessing = replace(embedder.preprocessing, **{k: value for k, value in chosen.items() if value is not None})
    return embedder.freeze(model.frozen) if model.frozen is not None else embedder
