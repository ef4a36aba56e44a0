"""The exact ranks of each query's relevant items, ties included."""

from kinfold.errors import ShapeError
from kinfold.evaluation.exclusion import Exclude
from kinfold.evaluation.inputs import check_dimensions, embedding_of
from kinfold.evaluation.labels import codes_of
from kinfold.evaluation.memory import bytes_of
from kinfold.evaluation.precision import exact_products
from kinfold.evaluation.rank_record import Ranks, join
from kinfold.evaluation.search import Depth, search_of
from kinfold.records import Similarity


def ranks(  # noqa: PLR0913 - the two sides, their labels, and what ranks them
    query: object,
    gallery: object,
    label: object,
    gallery_label: object,
    *,
    similarity: str | Similarity = "cosine",
    exclude: Exclude | None = None,
    memory: str | int = "512MB",
) -> Ranks:
    """Return the exact ranks of all relevant items (gallery items with the query's label), computed in blocks.

    Args:
        query: (n, d) embeddings: tensor, array or list.
        gallery: (m, d) embeddings.
        label: n strings or integers.
        gallery_label: m strings or integers.
        similarity: a name (`cosine`, `dot`, `negative_euclidean`, …) or a function (n, d), (m, d) → (n, m), larger = more alike.
        exclude: what a query may not find: a `SameItem`, or any function (query rows, gallery rows) → mask.
        memory: budget for what is held besides the embeddings, such as "512MB"; values do not depend on it.

    Raises:
        ShapeError: sizes that do not fit each other.
        DataError: embeddings or labels that cannot be used.
        ConfigError: an unknown similarity or an unreadable budget.

    Example:
        >>> found = ranks([[1.0, 0.0]], [[0.0, 1.0], [1.0, 0.1], [1.0, 0.0]], ["cat"], ["cat", "dog", "cat"])
        >>> found.above.tolist()
        [0, 2]
    """
    x, y = embedding_of(query, name="query"), embedding_of(gallery, name="gallery")
    check_dimensions(x, y)
    (code, gallery_code), _ = codes_of(label, gallery_label)
    for rows, labels, name in ((x, code, "query"), (y, gallery_code, "gallery")):
        if len(rows) != len(labels):
            raise ShapeError(f"{name} has {len(rows)} rows but {len(labels)} labels: pass one label for each row.")
    with exact_products(y.device):
        search = search_of((x, y), (code, gallery_code), similarity=similarity, exclude=exclude, memory=bytes_of(memory))
        return join(list(search.ranks(Depth("all")))).in_rows(search.query_order)
