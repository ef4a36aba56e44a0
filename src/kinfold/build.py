"""The only place where names become objects."""

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kinfold.config import Config, DataSettings, ObjectiveSettings
from kinfold.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from kinfold.core.hierarchy import Hierarchy
    from kinfold.data.table import Table
    from kinfold.models.embedder import Embedder
    from kinfold.objectives.base import Objective
    from kinfold.objectives.proxy import Proxies


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


def build_objective(
    settings: ObjectiveSettings, *, n_classes: int, dim: int, seed: int = 0, train: "Table | None" = None
) -> "Objective":
    """Make the objective for so many training classes and an embedding of so many dimensions.

    Args:
        settings: what the configuration says.
        n_classes: number of training classes.
        dim: size of the embedding.
        seed: of what is drawn.
        train: the training images, for groups of classes that their table gives.

    Raises:
        ConfigError: a name or an option is not known (with the nearest one), or does not go with this objective.
    """
    loss, similarity, miner = check_objective(settings, dim=dim)
    if settings.name == "pairwise":
        from kinfold.objectives.pairwise import Pairwise

        return Pairwise(loss, similarity=similarity, miner=miner)
    from kinfold.objectives.proxy import Proxies

    proxies = Proxies(loss, n_classes, dim, similarity=similarity, lr_scale=settings.lr_scale or 100.0, seed=seed)
    return _with_levels(proxies, settings, seed=seed, train=train) if settings.name == "hpl" else proxies


def check_objective(
    settings: ObjectiveSettings, *, dim: int
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any] | None]:
    """Return loss, similarity and miner of an objective.

    Raises:
        ConfigError: a name or an option is not known (with the nearest one), or does not go with this objective.
    """
    from kinfold.clusterings import CLUSTERINGS
    from kinfold.core.mining import MINERS
    from kinfold.core.similarity import SIMILARITIES
    from kinfold.objectives import OBJECTIVES

    choose(settings.name, OBJECTIVES, "objective.name")
    if settings.clustering is not None:
        choose(settings.clustering, CLUSTERINGS, "objective.clustering")
    loss, similarity = _loss(settings, dim), choose(settings.similarity, SIMILARITIES, "objective.similarity")
    _refuse_idle_options(settings)
    miner = None
    if settings.miner is not None:
        miner = bind(choose(settings.miner, MINERS, "objective.miner"), settings.miner_options, "objective.miner_options")
    return loss, similarity, miner


_HPL = ("level_weights", "refresh_every", "warmup_steps", "cluster_space", "clustering", "update", "groups_from", "on_empty")
_HPL_ONLY = ("coarse_sizes", "hierarchy", *_HPL)


def _with_levels(proxies: "Proxies", settings: ObjectiveSettings, *, seed: int, train: "Table | None") -> "Objective":
    """Put the levels of a hierarchy over proxies."""
    from kinfold.core.random_groups import random_hierarchy
    from kinfold.objectives.hpl import HierarchicalProxies

    n_classes = len(proxies.class_proxies())
    sizes, wanted = settings.coarse_sizes, settings.hierarchy or "learned"
    given = None
    if wanted == "random":
        if sizes is None:
            raise ConfigError("`objective.hierarchy` = 'random' needs `objective.coarse_sizes`: say how many groups are dealt.")
        given, sizes = random_hierarchy(range(n_classes), sizes, seed=seed), None
    elif wanted != "learned":
        given = _given(wanted, train)
    chosen = {name: getattr(settings, name) for name in _HPL if getattr(settings, name) is not None}
    return HierarchicalProxies(proxies, sizes, hierarchy=given, seed=seed, **chosen)


def _given(wanted: str | tuple[str, ...], train: "Table | None") -> "Hierarchy":
    from kinfold.data.hierarchies import hierarchy_of

    levels = [wanted] if isinstance(wanted, str) else list(wanted)
    if train is None:
        raise ConfigError(f"`objective.hierarchy` = {levels} needs the training images' table.")
    try:
        return hierarchy_of(train, levels)
    except ConfigError as error:
        raise ConfigError(f"`objective.hierarchy` = {levels}: give learned, random, or levels of the table; {error}") from None


def _refuse_idle_options(settings: ObjectiveSettings) -> None:
    """Stop at an option that would do nothing."""
    if settings.name != "pairwise" and settings.miner is not None:
        raise ConfigError(f"`objective.miner` = {settings.miner!r} goes with `objective.name` = 'pairwise' only: remove it.")
    if settings.name == "pairwise" and settings.lr_scale is not None:
        raise ConfigError("`objective.lr_scale` goes with proxies, not with `objective.name` = 'pairwise': remove it.")
    idle = [name for name in _HPL_ONLY if settings.name != "hpl" and getattr(settings, name) is not None]
    if idle:
        raise ConfigError(
            f"`objective.{idle[0]}` goes with `objective.name` = 'hpl' only, not with {settings.name!r}: remove it."
        )
    for options, owner in (("miner_options", "miner"), ("pick_options", "pick")):
        if getattr(settings, options) and getattr(settings, owner) is None:
            raise ConfigError(f"`objective.{options}` does nothing without `objective.{owner}`: name one, or remove the options.")


def _loss(settings: ObjectiveSettings, dim: int) -> Callable[..., Any]:
    """Return the loss with its options, and with the triplets it is to take."""
    from kinfold.core.mining import PICKS
    from kinfold.losses import LOSSES

    function = choose(settings.loss, LOSSES, "objective.loss")
    loss = bind(function, settings.loss_options, "objective.loss_options")
    if settings.pick is None:
        return loss
    parameters = inspect.signature(function).parameters
    if "pick" not in parameters:
        raise ConfigError(
            f"`objective.pick` = {settings.pick!r} goes with a triplet loss, not with {settings.loss!r}: remove it."
        )
    own = {}
    if settings.pick == "semi_hard":  # its window is the loss's margin
        own["margin"] = settings.loss_options.get("margin", parameters["margin"].default)
    if settings.pick == "distance_weighted":
        own["dim"] = dim
    pick = bind(choose(settings.pick, PICKS, "objective.pick"), {**own, **settings.pick_options}, "objective.pick_options")
    return partial(loss, pick=pick)


def choose(name: str, table: Mapping[str, Any], key: str) -> Any:
    """Return the table's entry, or an error with the nearest name."""
    if name not in table:
        raise ConfigError(f"`{key}` = {name!r} is not known: {did_you_mean(name, table)}")
    return table[name]


def bind(function: Callable[..., Any], options: Mapping[str, Any], key: str) -> Callable[..., Any]:
    """Bind keyword options to a function after checking that it has them.

    Example:
        >>> def loss(sim, pairs, *, scale=32.0): ...
        >>> bind(loss, {"scal": 2}, "objective.loss_options")
        Traceback (most recent call last):
        kinfold.errors.ConfigError: `objective.loss_options.scal` is not known: did you mean `scale`? Known: scale.
    """
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    for name, value in options.items():
        if name not in known:
            raise ConfigError(f"`{key}.{name}` is not known: {did_you_mean(name, known)}")
        default = inspect.signature(function).parameters[name].default
        if not _is_like(value, default):
            raise ConfigError(f"`{key}.{name}` = {value!r} cannot be used: it must be {_kind(default)}, such as {default!r}.")
    return partial(function, **options) if options else function


def _is_like(value: Any, default: Any) -> bool:
    if default is inspect.Parameter.empty or default is None:
        return True
    if isinstance(default, bool | str):
        return type(value) is type(default)
    if isinstance(default, int | float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return not callable(default)


def _kind(default: Any) -> str:
    if callable(default):
        return "given as `objective.pick`"
    return {bool: "true or false", str: "text"}.get(type(default), "a number")
