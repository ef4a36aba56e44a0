"""Heads that start well: first weights from the principal components of the training images' features."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from kinfold.core.principal import principal_map
from kinfold.data.table import Table
from kinfold.errors import ConfigError, did_you_mean
from kinfold.measure import embed_table
from kinfold.models.embedder import Embedder
from kinfold.models.feature_cache import FeatureCache
from kinfold.models.heads import LinearHead

STARTS = ("pca", "whitening")


def start_head(
    embedder: Embedder,
    table: Table,
    kind: Literal["pca", "whitening"] = "pca",
    *,
    cache: FeatureCache | None = None,
    workers: int = 0,
    broken: dict[str, str] | None = None,
) -> None:
    """Set a linear head to the projection onto the first principal components of a table's features.

        embedding = W (feature − mean)          W: the `dim` directions of largest variance, by rows
        whitening: each row of W divided by the standard deviation along it

    so that training begins from what the trunk knows, instead of from a random projection of it. The weights are saved with the model as
    any others are.

    Args:
        embedder: with a linear head of at most as many outputs as the trunk has features; changed in place.
        table: the training images.
        kind: `pca` or `whitening`.
        cache: where features are kept.
        workers: processes that load images.
        broken: see `embed_table`.

    Raises:
        ConfigError: an unknown kind, no linear head, or more outputs than features or images.
    """
    if kind not in STARTS:
        raise ConfigError(f"`head_start` = {kind!r}: {did_you_mean(kind, ['random', *STARTS])}")
    head = embedder.head
    if not isinstance(head, LinearHead):
        raise ConfigError(f"`head_start` = {kind!r} needs a linear head: give the model a `dim`, or leave `head_start` out.")
    found = embed_table(embedder, table, cache=cache, workers=workers, broken=broken)
    set_head(head, found.feature, kind)


@torch.no_grad()
def set_head(head: LinearHead, feature: Float[Tensor, "n f"], kind: Literal["pca", "whitening"]) -> None:
    """Set a head's weights from features; see `start_head`."""
    linear: nn.Linear = head.linear
    weight, mean = principal_map(head.norm(feature), linear.out_features, whiten=kind == "whitening")
    linear.weight.copy_(weight)
    if linear.bias is not None:
        linear.bias.copy_(-weight @ mean)
