"""Embeddings and labels → Scores: the public entry of the evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.core.similarity import cosine
from kinfold.errors import ConfigError, ShapeError, did_you_mean
from kinfold.evaluation.cluster_metrics import cluster_codes
from kinfold.evaluation.compute import query_values, treat_empty
from kinfold.evaluation.exclusion import SameItem
from kinfold.evaluation.inputs import check_dimensions, embedding_of
from kinfold.evaluation.labels import Label, codes_of
from kinfold.evaluation.memory import bytes_of
from kinfold.evaluation.metric_names import Metric, metrics_of
from kinfold.evaluation.metrics import CLUSTERING
from kinfold.evaluation.precision import exact_products
from kinfold.evaluation.scores import Scores
from kinfold.evaluation.search import search_of
from kinfold.evaluation.spaces import function_of
from kinfold.evaluation.typed import integers
from kinfold.records import Similarity

EMPTY = ("skip", "neg", "pos", "error")


@dataclass(frozen=True)
class Task:
    """What is searched for what: both sides, checked and coded.

    Attributes:
        query: query embeddings.
        gallery: gallery embeddings; the same tensor where a set is searched in itself.
        code: class of each query.
        gallery_code: class of each gallery row; the same tensor where a set is searched in itself.
        class_names: label of each code.
        exclude: pairs of one item, or none.
    """

    query: Float[Tensor, "n d"]
    gallery: Float[Tensor, "m d"]
    code: Int[Tensor, " n"]
    gallery_code: Int[Tensor, " m"]
    class_names: list[Label]
    exclude: SameItem | None


def score(  # noqa: PLR0913 - one call holds everything that an evaluation may depend on
    embedding: object,
    label: object,
    *,
    gallery: object = None,
    gallery_label: object = None,
    item: object = None,
    gallery_item: object = None,
    ks: object = (1, 2, 4, 8),
    similarity: str | Similarity = "cosine",
    metrics: object = None,
    empty: str = "skip",
    memory: str | int = "512MB",
) -> Scores:
    """Measure how well embeddings find their own class, from exact ranks; ties count with their mean over all orders.

    Without `gallery` every row is searched among the other rows, the rows of the same item left out. With `gallery` all of it is
    searched, without the query's own item if both sides name theirs.

    Args:
        embedding: (n, d) queries: tensor on any device, array or list; finite. Computed in float32, float64 stays.
        label: n strings or integers of any size.
        gallery: (m, d) embeddings to search; `None`: the queries themselves.
        gallery_label: m labels; needed with `gallery`.
        item: which image each row shows, strings or integers; default without gallery: every row its own.
        gallery_item: the same for the gallery.
        ks: the k of recall@k and precision@k; any size, a precision is clipped to the number of candidates.
        similarity: `cosine`, `dot`, `negative_euclidean`, …, or a function (n, d), (m, d) → (n, m), larger = more alike. A zero row
            has cosine 0 to everything.
        metrics: `None` for all ranking metrics, or any of `recall_at_k`, `precision_at_k`, `r_precision`, `map_at_r`, `map`, `mrr`,
            `ndcg`, `nmi`, `ami`; also with a k of its own, as in `recall_at_10`. The last two run k-means on the queries.
        empty: queries without a relevant item are left out (`skip`), count 0 (`neg`) or 1 (`pos`), or stop with an `error`.
        memory: budget for what is held besides the embeddings, such as "512MB"; values do not depend on it.

    Returns:
        Means, per-query values, skipped queries, intervals and tables; see `Scores`.

    Raises:
        ConfigError: a setting is unknown or out of range.
        ShapeError: sizes that do not fit each other.
        DataError: embeddings or labels that cannot be used, or no query with a relevant item.

    Example:
        >>> scores = score([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], ["cat", "cat", "dog", "cat"], ks=(1,), metrics="recall_at_k")
        >>> scores
        Scores(recall_at_1=66.67; 3 queries scored, 1 query without a relevant item)
        >>> scores.skipped
        tensor([2])
    """
    if empty not in EMPTY:
        raise ConfigError(f"empty is `{empty}`, which is not known; {did_you_mean(str(empty), EMPTY)}")
    chosen, budget, function = metrics_of(metrics, ks), bytes_of(memory), function_of(similarity)
    task = _task(embedding, label, (gallery, gallery_label), (item, gallery_item))
    ranking = [metric for metric in chosen if metric.name not in CLUSTERING]
    with exact_products(task.query.device):
        search = search_of(
            (task.query, task.gallery), (task.code, task.gallery_code), similarity=function, exclude=task.exclude, memory=budget
        )
        value, n_relevant = query_values(search, ranking)
    value, query, skipped = treat_empty(value, n_relevant, empty)
    found = {name: float(x.mean()) for name, x in value.items()} | _clustering(task, chosen, normalised=function is cosine)
    settings = {"similarity": getattr(function, "__name__", repr(function)), "empty": empty}
    sizes = {"n_queries": len(task.query), "n_gallery": len(task.gallery)}
    return Scores(
        {metric.name: found[metric.name] for metric in chosen},
        value,
        query,
        task.code[query],
        task.class_names,
        skipped,
        {**settings, **sizes},
    )


def score_levels(  # noqa: PLR0913 - the same settings as `score`, for several label columns
    embedding: object,
    levels: Mapping[str, object],
    *,
    is_query: object = None,
    is_gallery: object = None,
    item: object = None,
    ks: object = (1, 2, 4, 8),
    similarity: str | Similarity = "cosine",
    metrics: object = None,
    coarse_metrics: object = None,
    empty: str = "skip",
    memory: str | int = "512MB",
) -> dict[str, Scores]:
    """Score one set of embeddings against several label columns, such as class, family and order.

    Args:
        embedding: (n, d) embeddings of all rows.
        levels: labels of all rows, by name of the level.
        is_query: which rows search; `None`: all. Scores then number the queries among these rows.
        is_gallery: which rows are searched; `None`: all. A row never finds itself.
        item: see `score`, of all rows; default: every row its own.
        ks: see `score`.
        similarity: see `score`.
        metrics: see `score`.
        coarse_metrics: the same for every level but the first; `None`: those of `metrics`.
        empty: see `score`.
        memory: see `score`.

    Returns:
        The scores of each level.

    Example:
        >>> levels = {"kind": ["cat", "cat", "dog"], "order": ["pets", "pets", "pets"]}
        >>> found = score_levels([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]], levels, metrics="recall_at_1")
        >>> [float(scores.metrics["recall_at_1"]) for scores in found.values()]
        [0.0, 1.0]
    """
    if not levels:
        raise ConfigError("levels is empty: name at least one label column.")
    x = embedding_of(embedding)
    rows, gallery_rows = _rows_of(is_query, len(x), "is_query"), _rows_of(is_gallery, len(x), "is_gallery")
    (items,), _ = codes_of(torch.arange(len(x)) if item is None else item, what="item")
    _check_length(items, x, "item")
    found = dict[str, Scores]()
    for name, column in levels.items():
        wanted = coarse_metrics if found and coarse_metrics is not None else metrics
        (code,), names = codes_of(column, what=f"label of level `{name}`")
        _check_length(code, x, f"level `{name}`")
        label = [names[c] for c in integers(code)]
        found[name] = score(
            x[rows.to(x.device)],
            [label[row] for row in integers(rows)],
            gallery=x[gallery_rows.to(x.device)],
            gallery_label=[label[row] for row in integers(gallery_rows)],
            item=items[rows],
            gallery_item=items[gallery_rows],
            ks=ks,
            similarity=similarity,
            metrics=wanted,
            empty=empty,
            memory=memory,
        )
    return found


def _task(embedding: object, label: object, gallery: tuple[object, object], items: tuple[object, object]) -> Task:
    query = embedding_of(embedding)
    if gallery[0] is None:
        if gallery[1] is not None or items[1] is not None:
            raise ConfigError("gallery_label and gallery_item need `gallery`: pass its embeddings too.")
        (code,), names = codes_of(label)
        (item,), _ = codes_of(torch.arange(len(query)) if items[0] is None else items[0], what="item")
        _check_length(code, query, "label")
        _check_length(item, query, "item")
        return Task(query, query, code, code, names, SameItem(item, item))
    if gallery[1] is None:
        raise ConfigError("gallery needs `gallery_label`: pass one label for each gallery row.")
    other = embedding_of(gallery[0], name="gallery")
    check_dimensions(query, other)
    (code, other_code), names = codes_of(label, gallery[1])
    _check_length(code, query, "label")
    _check_length(other_code, other, "gallery_label")
    if (items[0] is None) != (items[1] is None):
        raise ConfigError("item and gallery_item go together: pass both to leave out a query's own item, or none.")
    if items[0] is None:
        return Task(query, other, code, other_code, names, None)
    (item, other_item), _ = codes_of(*items, what="item")
    _check_length(item, query, "item")
    _check_length(other_item, other, "gallery_item")
    return Task(query, other, code, other_code, names, SameItem(item, other_item))


def _check_length(codes: Int[Tensor, " k"], x: Float[Tensor, "n d"], name: str) -> None:
    if len(codes) != len(x):
        raise ShapeError(f"{name} has {len(codes)} entries for {len(x)} embeddings: pass one for each row.")


def _clustering(task: Task, chosen: list[Metric], *, normalised: bool) -> dict[str, float]:
    names = [metric.name for metric in chosen if metric.name in CLUSTERING]
    if not names:
        return {}
    cluster = cluster_codes(task.query, len(distinct(task.code)[0]), normalised=normalised)
    return {name: CLUSTERING[name](task.code, cluster) for name in names}


def _rows_of(mask: object, n: int, name: str) -> Int[Tensor, " k"]:
    """Return the rows that a mask (bools, or 0 and 1) selects."""
    if mask is None:
        return torch.arange(n)
    keep: Bool[Tensor, " n"] = torch.as_tensor(mask).flatten().bool().cpu()
    if len(keep) != n:
        raise ShapeError(f"{name} has {len(keep)} entries for {n} embeddings: pass one for each row.")
    if not keep.any():
        raise ConfigError(f"{name} selects no row.")
    return keep.nonzero().flatten()
