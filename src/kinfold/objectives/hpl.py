"""HPL: hierarchical proxies; the same proxy loss on classes, on groups of classes, and on groups of groups."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from kinfold.clusterings import clustering_of, clusters_of_clusters
from kinfold.core.clustering import centres_of, check_sizes, in_space
from kinfold.core.hierarchy import Hierarchy
from kinfold.errors import ConfigError
from kinfold.objectives.base import Objective, ProxyObjective
from kinfold.objectives.coarse_level import CoarseLevel
from kinfold.objectives.proxy import proxy_similarities
from kinfold.records import Embedded, Losses, ParamGroup, Similarity, TrainSet

Update = Literal["online", "offline", "fixed"]
COARSE_WEIGHT = 0.1
"""The paper does not state the weights of its levels; this one was reconstructed, see the page on HPL."""
CLASSES_PER_GROUP = 10
"""Where no coarse size is given: the paper takes 10 coarse proxies for the 98 classes of Cars-196."""


class HierarchicalProxies(Objective):
    """HPL (Yang et al. 2022): a proxy loss on each level of a hierarchy of proxies, which is learned, or given.

        L = Σ_l ω_l · loss(x, y^l, P_l),    y^0 = class,  y^(l+1) = Q_l[y^l]                        (eq. 6)

    P_0 are the base's proxies, which learn. P_1, P_2, … are coarse proxies: constants between refreshes, without a gradient. They
    start as k-means centroids of the level below; every T optimiser steps, after the step and from the finest level up, each lower
    proxy goes to the nearest coarse proxy and each coarse proxy to the mean of its members:

        Q_l[i] = argmin_j ‖P_l[i] − P_(l+1)[j]‖²,    P_(l+1)[j] = mean of the P_l[i] with Q_l[i] = j

    Paper → here: K_1 … → coarse_sizes, ω_l → level_weights, T → refresh_every. The values of ω and T are not in the paper's text:
    the defaults are reconstructed. So are the order of levels within a refresh, what an empty group does, warm-up, and `unit`.

    Args:
        base: a proxy objective such as `Proxies(proxy_anchor, n_classes, dim)`: its loss is used on every level.
        coarse_sizes: number of groups of each coarse level, finest first, none larger than the one before; `()` is the base
            loss, bit for bit. `None`: one level of n_classes / 10.
        level_weights: ω, one for the classes and one for each coarse level; `None`: 1, then 0.1 each.
        refresh_every: optimiser steps between two refreshes, counted from the run's first step.
        warmup_steps: steps with the class level alone; then the first clustering. 0: before the first step, as in the paper, when
            proxies are still random.
        cluster_space: `raw` vectors, as the paper's formulas say, or `unit` vectors (directions), which is what cosine sees.
        clustering: `kmeans`, `gmm`, `agglomerative`, an estimator with `fit` and `predict`, or a function; see `clustering_of`.
        update: `online` (the paper's refresh), `offline` (cluster anew at each refresh), `fixed` (groups stay, coarse proxies follow
            their members). `None`: `fixed` for a given hierarchy, otherwise `online`.
        groups_from: what the first clustering clusters: `proxies` (the paper), or `embeddings`, the class means of the training
            images before the first step: random proxies have no groups worth finding, and few of them leave a group again.
        hierarchy: given groups over the classes in their order (HPL-GT); its levels take the place of `coarse_sizes`.
        on_empty: at an online refresh an empty group gets a part of the largest (`split`, one group a refresh), or stays where it is
            (`keep`), as a negative for everyone.
        seed: of the clustering.

    Raises:
        ConfigError: sizes that grow, weights of another number, a hierarchy of other classes, an unknown name.

    Example:
        >>> from kinfold.losses import proxy_anchor
        >>> from kinfold.objectives.proxy import Proxies
        >>> objective = HierarchicalProxies(Proxies(proxy_anchor, 100, 64), (20, 5))
        >>> [tuple(level.proxies.shape) for level in objective.levels]
        [(20, 64), (5, 64)]

    Reference:
        Yang, Bastan, Zhu, Gray, Samaras, Hierarchical Proxy-based Loss for Deep Metric Learning, WACV 2022, eq. 3 to 6, algorithm 1.
    """

    grouped: Tensor
    started: Tensor

    def __init__(  # noqa: PLR0913 (each is a choice of the method)
        self,
        base: ProxyObjective,
        coarse_sizes: Sequence[int] | None = None,
        *,
        level_weights: Sequence[float] | None = None,
        refresh_every: int = 100,
        warmup_steps: int = 0,
        cluster_space: Literal["raw", "unit"] = "raw",
        clustering: Any = "kmeans",
        update: Update | None = None,
        groups_from: Literal["proxies", "embeddings"] = "proxies",
        hierarchy: Hierarchy | None = None,
        on_empty: Literal["split", "keep"] = "split",
        seed: int = 0,
    ):
        super().__init__()
        assert base.n_classes is not None and base.dim is not None
        self.base, self.n_classes, self.dim = base, base.n_classes, base.dim
        sizes = _sizes(self.n_classes, coarse_sizes, hierarchy)
        self.level_weights = _weights(level_weights, len(sizes))
        self.update = _one_of("update", update or ("fixed" if hierarchy else "online"), ("online", "offline", "fixed"))
        self.cluster_space = _one_of("cluster_space", cluster_space, ("raw", "unit"))
        self.groups_from = _one_of("groups_from", groups_from, ("proxies", "embeddings"))
        self.on_empty = _one_of("on_empty", on_empty, ("split", "keep"))
        if refresh_every < 1 or warmup_steps < 0:
            raise ConfigError(
                f"refresh_every = {refresh_every} and warmup_steps = {warmup_steps}: at least 1 step, and not negative."
            )
        self.refresh_every, self.warmup_steps, self.seed = refresh_every, warmup_steps, seed
        self.clustering, self.is_given = _named_or_plain(clustering), hierarchy is not None
        clustering_of(clustering)  # a misspelt one is found here
        self._clustering = clustering
        self.levels = nn.ModuleList(CoarseLevel(k, below, self.dim) for below, k in pairwise((self.n_classes, *sizes)))
        for level, given in zip(self._coarse, hierarchy.levels if hierarchy else (), strict=hierarchy is not None):
            level.parent.copy_(torch.tensor(given.parent))
        self.register_buffer("grouped", torch.tensor(self.is_given))
        self.register_buffer("started", torch.tensor(False))
        self._is_grouped, self._has_started = self.is_given, False  # the buffers' values without waiting for a GPU
        self.register_load_state_dict_post_hook(_restore_flags)

    def terms(
        self,
        embedding: Float[Tensor, "n d"],
        label: Int[Tensor, " n"],
        *,
        extra_proxies: Float[Tensor, "e d"] | None = None,
    ) -> Losses:
        """Return the terms `level_0`, `level_1`, …; extra proxies, and rows with their labels, take part in `level_0` alone."""
        weights = self.level_weights
        found = {"level_0": weights[0] * self.base.terms(embedding, label, extra_proxies=extra_proxies).total}
        if self.warmup_steps == 0:
            self.start()
        if not self._has_started:
            return Losses(found)
        if extra_proxies is not None:
            is_real = label < len(self.base.class_proxies())
            embedding, label = embedding[is_real], label[is_real]
        for i, level in enumerate(self._coarse, start=1):
            label = level.parent[label]
            if weights[i]:
                found[f"level_{i}"] = weights[i] * self.base.against(embedding, label, level.proxies)
        return Losses(found)

    def against(
        self, embedding: Float[Tensor, "n d"], label: Int[Tensor, " n"], proxies: Float[Tensor, "k d"]
    ) -> Float[Tensor, ""]:
        """Return the base's loss against any other proxies."""
        return self.base.against(embedding, label, proxies)

    @property
    def similarity(self) -> Similarity:
        """The base's."""
        return self.base.similarity

    def class_proxies(self) -> Float[Tensor, "c d"]:
        """Return the base's proxies."""
        return self.base.class_proxies()

    def forward(self, batch: Embedded, phase: str = "main") -> Losses:
        """Return one term for each level; coarse ones from the first clustering on."""
        del phase  # there is one
        return self.terms(batch.embedding, batch.label)

    def start(self) -> None:
        """Cluster for the first time, or place the proxies of a given hierarchy; does nothing afterwards, also after resuming."""
        if self._has_started:
            return
        if not self._is_grouped and self.groups_from == "embeddings":
            raise ConfigError("groups_from = 'embeddings': call `on_epoch_start(0, train_set)` first, as `fit` does.")
        self._place(new_groups=not self._is_grouped)
        self.started.fill_(True)
        self._has_started = True

    def refresh(self) -> None:
        """Bring groups and coarse proxies up to date with the class proxies, from the finest level up."""
        if self.update == "offline":
            self._place(new_groups=True)
            return
        unit = self.cluster_space == "unit"
        how = {"moves": self.update == "online", "refills": self.on_empty == "split", "unit": unit}
        with torch.no_grad(), torch.autocast(self.started.device.type, enabled=False):
            below = in_space(self.base.class_proxies(), unit=unit)
            for level in self._coarse:
                level.follow(below, **how)
                below = level.proxies

    def on_epoch_start(self, epoch: int, train_set: TrainSet) -> None:
        """Find groups among the embeddings, if that is wanted; place coarse proxies before the first step, unless there is a warm-up."""
        del epoch
        if not self._is_grouped and self.groups_from == "embeddings":
            self._group(train_set.embed())
        if self.warmup_steps == 0:
            self.start()

    def on_step_end(self, step: int) -> None:
        """Cluster at the end of the warm-up, refresh at every multiple of `refresh_every` after it."""
        if not self._has_started:
            if step >= self.warmup_steps:
                self.start()
        elif step % self.refresh_every == 0:
            self.refresh()

    def parameter_groups(self) -> list[ParamGroup]:
        """Return the base's groups."""
        return self.base.parameter_groups()

    def describe(self) -> dict[str, Any]:
        """Return what tells this objective from another one, the base's settings and given groups included."""
        given = [level.parent.tolist() for level in self._coarse] if self.is_given and self.update == "fixed" else None
        return {**super().describe(), "base": getattr(self.base, "describe", dict)(), "given": given}

    def health(self, batch: Embedded) -> dict[str, float]:
        """Return the base's numbers, and some of each coarse level l once there is one.

        `own_proxy_similarity_l`, `other_proxy_similarity_l`: see `proxy_similarities`; `groups_empty_l`: groups without a member;
        `largest_group_l`: share of the lower proxies in the largest group; `moved_l`: lower proxies that changed their group at the
        last refresh.
        """
        found, label = self.base.health(batch), batch.label
        for i, level in enumerate(self._coarse if self._has_started else (), start=1):
            label = level.parent[label]
            own, other = proxy_similarities(batch.embedding, label, level.proxies, similarity=self.base.similarity)
            count = torch.bincount(level.parent, minlength=len(level.proxies))
            found[f"own_proxy_similarity_{i}"], found[f"other_proxy_similarity_{i}"] = own, other
            found[f"groups_empty_{i}"] = float((count == 0).sum())
            found[f"largest_group_{i}"] = float(count.max() / count.sum())
            found[f"moved_{i}"] = float(level.n_moved)
        return found

    def snapshot(self) -> dict[str, Any]:
        """Return `parent`: for each coarse level the group number of each lower proxy; nothing before the first clustering."""
        return {"parent": [level.parent.tolist() for level in self._coarse]} if self._has_started and self._coarse else {}

    @property
    def _coarse(self) -> list[CoarseLevel]:
        return [level for level in self.levels if isinstance(level, CoarseLevel)]

    @torch.no_grad()
    def _place(self, *, new_groups: bool) -> None:
        """Place all coarse proxies at the centres of their groups, which are found anew or stay."""
        unit = self.cluster_space == "unit"
        with torch.autocast(self.started.device.type, enabled=False):
            below = in_space(self.base.class_proxies(), unit=unit)
            parents = self._clustered(below) if new_groups else [level.parent for level in self._coarse]
            for level, parent in zip(self._coarse, parents, strict=True):
                level.place(below, parent, unit=unit)
                below = level.proxies

    @torch.no_grad()
    def _group(self, train: Embedded) -> None:
        """Find the groups of each level among the class means of unit embeddings."""
        x = in_space(train.embedding, unit=True)
        means = centres_of(x, train.label.to(x.device), len(self.base.class_proxies()), unit=True)
        for level, parent in zip(self._coarse, self._clustered(means), strict=True):
            level.parent.copy_(parent)
        self.grouped.fill_(True)
        self._is_grouped = True

    def _clustered(self, x: Float[Tensor, "n d"]) -> list[Int[Tensor, " n"]]:
        sizes = [len(level.proxies) for level in self._coarse]
        return clusters_of_clusters(x, sizes, self._clustering, unit=self.cluster_space == "unit", seed=self.seed)


def _restore_flags(objective: HierarchicalProxies, incompatible: Any) -> None:
    del incompatible
    objective._is_grouped, objective._has_started = bool(objective.grouped), bool(objective.started)


def _sizes(n_classes: int, coarse_sizes: Sequence[int] | None, hierarchy: Hierarchy | None) -> tuple[int, ...]:
    if hierarchy is not None:
        if coarse_sizes is not None:
            raise ConfigError(
                f"coarse_sizes = {list(coarse_sizes)} and a given hierarchy of {list(hierarchy.sizes)} groups: give one."
            )
        if len(hierarchy.classes) != n_classes:
            raise ConfigError(
                f"the hierarchy has {len(hierarchy.classes)} classes, the base {n_classes}: use `hierarchy.restricted(train.classes)`."
            )
        return hierarchy.sizes
    sizes = (max(1, round(n_classes / CLASSES_PER_GROUP)),) if coarse_sizes is None else tuple(coarse_sizes)
    check_sizes(sizes, n_classes, "coarse_sizes")
    return sizes


def _weights(level_weights: Sequence[float] | None, n_coarse: int) -> tuple[float, ...]:
    weights = (1.0, *[COARSE_WEIGHT] * n_coarse) if level_weights is None else tuple(float(weight) for weight in level_weights)
    if len(weights) != n_coarse + 1 or not all(0 <= weight < float("inf") for weight in weights):
        raise ConfigError(
            f"level_weights = {list(weights)}: one weight of 0 or more for the classes and for each of {n_coarse} coarse levels."
        )
    return weights


def _one_of(key: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ConfigError(f"{key} = {value!r}: one of {', '.join(known)}.")
    return value


def _named_or_plain(clustering: Any) -> Any:
    return clustering if isinstance(clustering, str) else repr(clustering)
