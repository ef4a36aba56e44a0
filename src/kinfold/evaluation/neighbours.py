"""The exact nearest gallery rows of each query, in blocks."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.similarity import cosine, dot
from kinfold.evaluation.cutoffs import cutoff
from kinfold.evaluation.exclusion import Exclude
from kinfold.evaluation.inputs import check_dimensions, embedding_of
from kinfold.evaluation.memory import bytes_of
from kinfold.evaluation.precision import exact_products
from kinfold.evaluation.spaces import Space, function_of, plain_space, space_of
from kinfold.evaluation.tiles import QueryBlock, Sides, grid_of
from kinfold.evaluation.typed import integers
from kinfold.records import Neighbours, Similarity


def nearest(
    query: object,
    gallery: object,
    k: int,
    *,
    similarity: str | Similarity = "cosine",
    exclude: Exclude | None = None,
    memory: str | int = "512MB",
) -> Neighbours:
    """Return the k most alike gallery rows of each query, most alike first; equal similarities by gallery row.

    Lists are clipped to what a query may find, never padded, and a list for a smaller k is the start of one for a larger k.

    Args:
        query: (n, d) embeddings: tensor, array or list.
        gallery: (m, d) embeddings.
        k: how many; at least 1, any size.
        similarity: a name (`cosine`, `dot`, `negative_euclidean`, …) or a function (n, d), (m, d) → (n, m), larger = more alike.
        exclude: what a query may not find: a `SameItem`, or any function (query rows, gallery rows) → mask.
        memory: budget for what is held besides embeddings and result, such as "512MB"; values do not depend on it.

    Raises:
        ConfigError: k is no integer of at least 1, an unknown similarity, an unreadable budget.
        ShapeError: sizes that do not fit each other.
        DataError: embeddings that cannot be used.

    Example:
        >>> found = nearest([[1.0, 0.0]], [[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], 2)
        >>> found.of(0)[0].tolist()
        [1, 2]
    """
    k, budget = cutoff(k), bytes_of(memory)
    x, y = embedding_of(query, name="query"), embedding_of(gallery, name="gallery")
    check_dimensions(x, y)
    order = torch.arange(len(x)), torch.arange(len(y))
    order = (order[0], order[0]) if x is y else order
    with exact_products(x.device):
        grid = grid_of(Sides(x, y.to(x.device), *order), _space(similarity, x, y), exclude, budget)
        blocks = [_block(block, min(k, len(y)), budget // 4) for block in grid.blocks()]
    length = torch.cat([lengths for _, _, lengths in blocks])
    start = torch.cat([length.new_zeros(1), length.cumsum(0)])
    return Neighbours(torch.cat([index for index, _, _ in blocks]), torch.cat([sim for _, sim, _ in blocks]), start)


def _space(similarity: str | Similarity, x: Tensor, y: Tensor) -> Space:
    """Return cosine and dot as one product; anything else as it is, so that lists carry its own values."""
    function = function_of(similarity)
    if function is cosine or function is dot:
        return space_of(function, x, y)
    return plain_space(function, torch.float64 if torch.float64 in (x.dtype, y.dtype) else torch.float32)


def _block(block: QueryBlock, k: int, memory: int) -> tuple[Int[Tensor, " t"], Float[Tensor, " t"], Int[Tensor, " r"]]:
    """Return the lists of one block of queries, one after the other, and their lengths."""
    columns = max(block.n_columns, memory // (block.size * 12) // block.n_columns * block.n_columns)
    index = torch.empty((block.size, 0), dtype=torch.long, device=block.device)
    sim = torch.empty((block.size, 0), dtype=block.dtype, device=block.device)
    waiting_sim, waiting_index, width = [sim], [index], 0
    for i in range(block.n_tiles):
        tile = block.tile(i).clone()
        first = i * block.n_columns
        waiting_sim.append(tile)
        waiting_index.append(torch.arange(first, first + tile.shape[1], device=tile.device).expand(block.size, -1))
        width += tile.shape[1]
        if width >= columns or i == block.n_tiles - 1:
            sim, index = first_k(torch.cat(waiting_sim, dim=1), torch.cat(waiting_index, dim=1), k)
            waiting_sim, waiting_index, width = [sim], [index], 0
    found = sim > -torch.inf
    return index[found].cpu(), sim[found].cpu(), found.sum(dim=1).cpu()


def first_k(sim: Float[Tensor, "r c"], index: Int[Tensor, "r c"], k: int) -> tuple[Float[Tensor, "r k"], Int[Tensor, "r k"]]:
    """Return the k largest similarities of each row and their indices, equal similarities by index.

    Equal similarities at the end of the list are the only trouble: a selection takes any of them, so those rows are sorted whole.
    """
    k = min(k, sim.shape[1])
    largest, place = sim.topk(k, dim=1)
    found = index.gather(1, place)
    by_index = found.argsort(dim=1)
    largest, found = largest.gather(1, by_index), found.gather(1, by_index)
    by_sim = largest.argsort(dim=1, descending=True, stable=True)
    largest, found = largest.gather(1, by_sim), found.gather(1, by_sim)
    cut = ((sim >= largest[:, -1:]).sum(dim=1) > k).nonzero().flatten()
    for row in integers(cut):
        at_least = (sim[row] >= largest[row, -1]).nonzero().flatten()
        at_least = at_least[index[row, at_least].argsort()]
        at_least = at_least[sim[row, at_least].argsort(descending=True, stable=True)][:k]
        largest[row], found[row] = sim[row, at_least], index[row, at_least]
    return largest, found
