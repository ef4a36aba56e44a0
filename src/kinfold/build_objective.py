"""The objective from a configuration: the host, and the method that builds on it."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kinfold.binding import bind, choose
from kinfold.errors import ConfigError
from kinfold.objective_settings import ObjectiveSettings

if TYPE_CHECKING:
    from kinfold.core.hierarchy import Hierarchy
    from kinfold.data.table import Table
    from kinfold.objectives.base import Objective
    from kinfold.objectives.pairwise import Pairwise
    from kinfold.objectives.proxy import Proxies

_HPL = ("level_weights", "refresh_every", "warmup_steps", "cluster_space", "clustering", "update", "groups_from", "on_empty")
_GENERATOR = ("novel_ratio", "max_novel", "existing", "generated_ratio", "divergence_weight", "noise_dim", "hidden_dim")
_KEYS = {
    "hpl": ("coarse_sizes", "hierarchy", *_HPL),
    "l2a_nc": ("pretraining_epochs", "divergence", "divergence_options", *_GENERATOR),
    "proxy_synthesis": ("synthesis_ratio", "concentration"),
    "embedding_expansion": ("n_points", "per"),
}
"""Method → the keys that are its own."""

PRETRAINING_SHARE = 0.8
"""Share of the epochs before the joint stage, where nothing else is said: the paper's total cost leaves it 10 to 20 %."""


def build_objective(
    settings: ObjectiveSettings,
    *,
    n_classes: int,
    dim: int,
    seed: int = 0,
    train: "Table | None" = None,
    epochs: int | None = None,
) -> "Objective":
    """Make the objective for so many training classes and an embedding of so many dimensions.

    Args:
        settings: what the configuration says.
        n_classes: number of training classes.
        dim: size of the embedding.
        seed: of what is drawn.
        train: the training images, for groups of classes that their table gives.
        epochs: of the run, for stages whose length is not set.

    Raises:
        ConfigError: a name or an option is not known (with the nearest one), or does not go with this objective.
    """
    loss, similarity, miner = check_objective(settings, dim=dim)
    if settings.kind == "pairwise":
        from kinfold.objectives.pairwise import Pairwise

        return _with_method(Pairwise(loss, similarity=similarity, miner=miner), settings, n_classes, dim, seed, epochs)
    from kinfold.objectives.proxy import Proxies

    proxies = Proxies(loss, n_classes, dim, similarity=similarity, lr_scale=settings.lr_scale or 100.0, seed=seed)
    host = _with_levels(proxies, settings, seed=seed, train=train) if settings.kind == "hpl" else proxies
    return _with_method(host, settings, n_classes, dim, seed, epochs)


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
    _divergence(settings)
    _refuse_idle_options(settings)
    miner = None
    if settings.miner is not None:
        miner = bind(choose(settings.miner, MINERS, "objective.miner"), settings.miner_options, "objective.miner_options")
    return loss, similarity, miner


def _with_method(
    host: "Proxies | Pairwise | Objective", settings: ObjectiveSettings, n_classes: int, dim: int, seed: int, epochs: int | None
) -> "Objective":
    """Put the method over its host."""
    base: Any = host
    if settings.name == "l2a_nc":
        from kinfold.objectives.l2a_nc import NovelClasses

        chosen: dict[str, Any] = _chosen(settings, _GENERATOR)
        divergence = _divergence(settings)
        if divergence is not None:
            chosen["divergence"] = divergence
        sizes = {"n_classes": n_classes, "dim": dim}
        return NovelClasses(base, pretraining_epochs=_pretraining_epochs(settings, epochs), **sizes, seed=seed, **chosen)
    if settings.name == "proxy_synthesis":
        from kinfold.objectives.proxy_synthesis import ProxySynthesis

        ratio = {} if settings.synthesis_ratio is None else {"ratio": settings.synthesis_ratio}
        return ProxySynthesis(base, **ratio, **_chosen(settings, ("concentration",)), seed=seed)
    if settings.name == "embedding_expansion":
        from kinfold.objectives.embedding_expansion import EmbeddingExpansion

        return EmbeddingExpansion(base, **_chosen(settings, ("n_points", "per")))
    return base


def _chosen(settings: ObjectiveSettings, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in names if getattr(settings, name) is not None}


def _pretraining_epochs(settings: ObjectiveSettings, epochs: int | None) -> int:
    if settings.pretraining_epochs is not None:
        return settings.pretraining_epochs
    if epochs is None:
        raise ConfigError("`objective.pretraining_epochs` is not set, and the number of epochs is not known: set it.")
    return max(1, round(PRETRAINING_SHARE * epochs))


def _divergence(settings: ObjectiveSettings) -> Callable[..., Any] | None:
    from kinfold.core.divergence import DIVERGENCES

    if settings.divergence is None:
        if settings.divergence_options:
            raise ConfigError("`objective.divergence_options` does nothing without `objective.divergence`: name one.")
        return None
    function = choose(settings.divergence, DIVERGENCES, "objective.divergence")
    return bind(function, settings.divergence_options, "objective.divergence_options")


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
    return HierarchicalProxies(proxies, sizes, hierarchy=given, seed=seed, **_chosen(settings, _HPL))


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
    if settings.host is not None and settings.name not in ("l2a_nc", "proxy_synthesis"):
        raise ConfigError(
            f"`objective.host` goes with l2a_nc and proxy_synthesis, not with `objective.name` = {settings.name!r}: remove it."
        )
    if settings.kind != "pairwise" and settings.miner is not None:
        raise ConfigError(f"`objective.miner` = {settings.miner!r} goes with {_wanted(settings, 'pairwise')} only: remove it.")
    if settings.kind == "pairwise" and settings.lr_scale is not None:
        raise ConfigError(f"`objective.lr_scale` goes with proxies, not with {_wanted(settings, 'pairwise')}: remove it.")
    for method, keys in _KEYS.items():
        if method in (settings.name, settings.kind):
            continue
        idle = [key for key in keys if getattr(settings, key) not in (None, {})]
        if idle:
            raise ConfigError(
                f"`objective.{idle[0]}` goes with `objective.name` = {method!r} only, not with {settings.name!r}: remove it."
            )
    for options, owner in (("miner_options", "miner"), ("pick_options", "pick")):
        if getattr(settings, options) and getattr(settings, owner) is None:
            raise ConfigError(f"`objective.{options}` does nothing without `objective.{owner}`: name one, or remove the options.")


def _wanted(settings: ObjectiveSettings, kind: str) -> str:
    return f"`objective.{'name' if settings.host is None else 'host'}` = {kind!r}"


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
