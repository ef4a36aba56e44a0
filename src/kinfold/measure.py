"""From a model and a table to embeddings and their scores, level by level."""

from collections.abc import Iterable

import numpy as np

from kinfold.data.loader import ImageLoader
from kinfold.data.samplers import SequentialBatchSampler
from kinfold.data.table import Table
from kinfold.embeddings import EmbeddingTable
from kinfold.errors import DataError
from kinfold.evaluation.embed import embed_batches
from kinfold.evaluation.evaluate import score_levels
from kinfold.evaluation.scores import Scores
from kinfold.models.embedder import TRUNK, Embedder
from kinfold.models.feature_cache import FeatureCache
from kinfold.models.frozen import Front, Rest
from kinfold.records import Embedded
from kinfold.stored import StoredBatches, evaluation_source


def embed_table(  # noqa: PLR0913 (each is a choice of its own)
    embedder: Embedder,
    table: Table,
    *,
    batch_size: int = 64,
    workers: int = 0,
    precision: str = "32-true",
    broken: dict[str, str] | None = None,
    cache: FeatureCache | None = None,
) -> Embedded:
    """Embed every image of a table, in its order, with the preprocessing that belongs to the model.

    Args:
        embedder: the model; modes and gradients are afterwards as they were.
        table: the images; labels of the result are `table.class_index`.
        batch_size: images at a time.
        workers: processes that load images.
        precision: `32-true`, or `bf16-mixed`, which is faster where the processor has it.
        broken: if given, images that cannot be read are left out and put here, name → reason; the result's `item` says who is left.
        cache: if given, outputs of the model's frozen part (of its trunk, where nothing is frozen) are kept there, and taken from
            there the next time.

    Raises:
        DataError: the table is empty, or an image cannot be read (and `broken` is not given).
    """
    if not len(table):
        raise DataError("there is no image to embed: the table, or the split that was asked for, has no row.")
    source = evaluation_source(table, embedder.preprocessing, workers=workers, on_broken="stop" if broken is None else "skip")
    sampler = SequentialBatchSampler(len(table), batch_size)
    if cache is None:
        model = embedder
        how = {"workers": workers, "on_broken": source.on_broken}
        batches = ImageLoader(source.images, source.label, source.item, transform=source.transform, sampler=sampler, **how)
    else:
        part = embedder.frozen or TRUNK
        model = Rest(embedder, from_values=True, part=part)
        batches = StoredBatches(source, sampler, Front(embedder, part), cache)
    try:
        return embed_batches(model, batches.epoch(0), precision=precision)
    finally:
        batches.close()
        if broken is not None:
            broken.update(batches.broken)


def evaluate(  # noqa: PLR0913 (the settings of `score`)
    embedder: Embedder,
    table: Table,
    *,
    ks: Iterable[int] = (1, 2, 4, 8),
    similarity: str = "cosine",
    metrics: Iterable[str] | None = None,
    memory: str | int = "512MB",
    workers: int = 0,
    precision: str = "32-true",
) -> dict[str, Scores]:
    """Embed a table's images and score them, level by level; see `embed_table`, `with_columns` and `score_table`.

    Args:
        embedder: the model.
        table: the images, such as `table.of_split("test")`.
        ks: cut-offs of recall and precision.
        similarity: larger = more alike.
        metrics: `None` for all rank metrics; see `score`.
        memory: what the blocks of similarities may take.
        workers: processes that load images.
        precision: see `embed_table`.

    Returns:
        Scores by level; the first is `label`.
    """
    embeddings = with_columns(table, embed_table(embedder, table, workers=workers, precision=precision))
    return score_table(embeddings, ks=ks, similarity=similarity, metrics=metrics, memory=memory)


def with_columns(table: Table, embedded: Embedded) -> EmbeddingTable:
    """Put embeddings beside the columns of the table's rows that they were made from, known by their items."""
    if len(embedded.item) != len(table):
        table = table.subset(np.isin(table.item, embedded.item.numpy()))
    return EmbeddingTable(
        embedding=embedded.embedding.float().cpu().numpy(),
        label=table.label,
        path=table.path,
        item=np.asarray(table.item),
        split=table.split,
        levels=dict(table.levels),
        is_query=table.is_query,
        is_gallery=table.is_gallery,
    )


def score_table(  # noqa: PLR0913 (the settings of `score_levels`)
    embeddings: EmbeddingTable,
    *,
    ks: Iterable[int] = (1, 2, 4, 8),
    similarity: str = "cosine",
    metrics: Iterable[str] | None = None,
    coarse_metrics: Iterable[str] | None = None,
    memory: str | int = "512MB",
    empty: str = "skip",
) -> dict[str, Scores]:
    """Score embeddings against `label` and each coarser level, these by `coarse_metrics` if given.

    Where rows are marked as queries and gallery, the queries search the gallery; otherwise every row searches all others.

    Returns:
        Scores by level; the first is `label`.

    Example:
        >>> x = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.2, 0.9]], dtype=np.float32)
        >>> found = score_table(EmbeddingTable(x, ("owl", "owl", "wren", "wren")), metrics=["recall_at_1"])
        >>> found["label"].metrics["recall_at_1"]
        1.0
    """
    return score_levels(
        embeddings.embedding,
        {"label": embeddings.label, **embeddings.levels},
        **embeddings.sides,
        item=embeddings.item,
        ks=tuple(ks),
        similarity=similarity,
        metrics=None if metrics is None else tuple(metrics),
        coarse_metrics=None if coarse_metrics is None else tuple(coarse_metrics),
        empty=empty,
        memory=memory,
    )
