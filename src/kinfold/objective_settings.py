"""What can be set about the objective."""

from typing import Literal

from pydantic import Field

from kinfold.settings import Settings

Scalar = bool | int | float | str


class ObjectiveSettings(Settings):
    """What is minimised.

    Attributes:
        name: `proxy`, `pairwise`, `hpl` (hierarchical proxies), `l2a_nc` (generated novel classes), `proxy_synthesis`, or
            `embedding_expansion`.
        host: what `l2a_nc` and `proxy_synthesis` build on: `proxy`, `hpl` or `pairwise`, with their keys; `None`: `proxy`.
            (`embedding_expansion` builds on `pairwise`.)
        loss: a name that `kinfold ls losses` shows.
        loss_options: the loss's keywords.
        similarity: `cosine`, `dot`, `negative_euclidean`, …
        miner: keeps the pairs worth training on (with pairs only).
        miner_options: the miner's keywords.
        pick: which triplets a triplet loss takes: `all_triplets`, `batch_hard`, `semi_hard` or `distance_weighted`.
        pick_options: its keywords; `semi_hard` takes the loss's margin, `distance_weighted` the embedding's size by itself.
        lr_scale: the proxies' learning rate as a multiple of the run's (with proxies only); `None`: 100.
        coarse_sizes: number of groups of each coarse level, finest first (this and the next: `hpl` only; see `HierarchicalProxies`);
            `None`: one level of a tenth of the classes.
        level_weights: one for the classes and one for each coarse level; `None`: 1, then 0.1 each.
        refresh_every: optimiser steps between two refreshes of the coarse proxies; `None`: 100.
        warmup_steps: steps with the class level alone, before the first clustering; `None`: 0.
        cluster_space: cluster `raw` proxies, or `unit` ones; `None`: raw.
        clustering: `kmeans`, `gmm` or `agglomerative`; `None`: kmeans.
        update: `online`, `offline` or `fixed`; `None`: `fixed` for groups that are given, otherwise `online`.
        groups_from: the first clustering is of the `proxies`, or of the training images' `embeddings`; `None`: proxies.
        hierarchy: `learned`, `random` (a control), or the table's levels that give the groups, such as `family` or ["family", "order"];
            `None`: learned.
        on_empty: `split` or `keep`; `None`: split.
        pretraining_epochs: epochs on real images alone, before the joint stage (this and the next: `l2a_nc` only; see `NovelClasses`);
            `None`: four fifths of `train.epochs`.
        novel_ratio: novel classes for each real one; `None`: 2.
        max_novel: at most so many; `None`: no limit.
        existing: generate the real classes instead (L2A-EC, a control); `None`: no.
        generated_ratio: generated vectors for each image of a batch; `None`: 1.
        divergence: `gauss_kl`, `classwise_kl`, `mmd` or `sliced_wasserstein`; `None`: gauss_kl.
        divergence_options: its keywords.
        divergence_weight: λ; `None`: 1.
        noise_dim: size of the noise; `None`: 16.
        hidden_dim: width of the generator; `None`: 128.
        synthesis_ratio: synthetic classes for each image of a batch (`proxy_synthesis` only; see `ProxySynthesis`); `None`: 1.
        concentration: a of the mixing share's law Beta(a, a) (`proxy_synthesis` only); `None`: 0.4.
        n_points: points between two images of a class (`embedding_expansion` only; see `EmbeddingExpansion`); `None`: 2.
        per: the hardest negative is sought among the copies of a `class`, or of an `image`; `None`: class.
    """

    name: Literal["proxy", "pairwise", "hpl", "l2a_nc", "proxy_synthesis", "embedding_expansion"] = "proxy"
    host: Literal["proxy", "hpl", "pairwise"] | None = None
    loss: str = "proxy_anchor"
    loss_options: dict[str, Scalar] = Field(default_factory=dict)
    similarity: str = "cosine"
    miner: str | None = None
    miner_options: dict[str, Scalar] = Field(default_factory=dict)
    pick: str | None = None
    pick_options: dict[str, Scalar] = Field(default_factory=dict)
    lr_scale: float | None = Field(default=None, gt=0)
    coarse_sizes: tuple[int, ...] | None = None
    level_weights: tuple[float, ...] | None = None
    refresh_every: int | None = Field(default=None, ge=1)
    warmup_steps: int | None = Field(default=None, ge=0)
    cluster_space: Literal["raw", "unit"] | None = None
    clustering: str | None = None
    update: Literal["online", "offline", "fixed"] | None = None
    groups_from: Literal["proxies", "embeddings"] | None = None
    hierarchy: str | tuple[str, ...] | None = None
    on_empty: Literal["split", "keep"] | None = None
    pretraining_epochs: int | None = Field(default=None, ge=0)
    novel_ratio: float | None = Field(default=None, ge=0)
    max_novel: int | None = Field(default=None, ge=1)
    existing: bool | None = None
    generated_ratio: float | None = Field(default=None, gt=0)
    divergence: str | None = None
    divergence_options: dict[str, Scalar] = Field(default_factory=dict)
    divergence_weight: float | None = Field(default=None, ge=0)
    noise_dim: int | None = Field(default=None, ge=1)
    hidden_dim: int | None = Field(default=None, ge=1)
    synthesis_ratio: float | None = Field(default=None, ge=0)
    concentration: float | None = Field(default=None, gt=0)
    n_points: int | None = Field(default=None, ge=0)
    per: Literal["class", "image"] | None = None

    @property
    def kind(self) -> Literal["proxy", "hpl", "pairwise"]:
        """What compares images: with proxies, with proxies on levels, or with each other."""
        if self.name in ("proxy", "hpl", "pairwise"):
            return self.name
        return self.host or ("pairwise" if self.name == "embedding_expansion" else "proxy")
