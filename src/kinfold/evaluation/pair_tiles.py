"""Every pair of a verification exactly once, tile by tile: alike, different, or left out."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.errors import ConfigError, ShapeError
from kinfold.evaluation.exclusion import SameItem
from kinfold.evaluation.inputs import embedding_of
from kinfold.evaluation.labels import Label, codes_of
from kinfold.evaluation.memory import bytes_of
from kinfold.evaluation.pair_space import pair_space
from kinfold.evaluation.spaces import function_of
from kinfold.evaluation.tiles import Grid, Sides, grid_of
from kinfold.evaluation.typed import integers
from kinfold.records import Similarity


@dataclass(frozen=True)
class Side:
    """Queries or gallery, sorted by class.

    Attributes:
        row: original row at each position.
        code: class at each position, ascending.
        turn: a pair counts where the query's turn is not after that of the gallery row.
    """

    row: Int[Tensor, " n"]
    code: Int[Tensor, " n"]
    turn: Int[Tensor, " n"]


@dataclass(frozen=True)
class LabelledPairs:
    """All pairs of a query and a gallery row, each unordered pair once, those of one item left out.

    Attributes:
        grid: the tiles.
        query: the queries, in the order of the grid.
        gallery: the gallery rows, in the order of the grid.
        n_pairs: how many pairs there are.
        classes: labels of the rows that take part.
        similarity: the function.
        step: what similarities are rounded to, or `None`.
        memory: budget in bytes.
    """

    grid: Grid
    query: Side
    gallery: Side
    n_pairs: int
    classes: frozenset[Label]
    similarity: Similarity
    step: float | None
    memory: int

    def tiles(self, *, alike_only: bool = False) -> Iterator[tuple[Float[Tensor, "r c"], Bool[Tensor, "r c"] | None]]:
        """Yield similarities, -inf where a pair is left out, and which pairs are of one class (`None`: none in this tile).

        Args:
            alike_only: pass over the tiles without a pair of one class; they are not computed.
        """
        for block in self.grid.blocks():
            query = _part(self.query, block.first, block.size)
            for i in range(block.n_tiles):
                gallery = _part(self.gallery, i * block.n_columns, block.n_columns)
                if query.turn.min() > gallery.turn.max():
                    continue  # each of these pairs is met the other way round
                some_alike = bool(query.code[0] <= gallery.code[-1] and gallery.code[0] <= query.code[-1])
                if alike_only and not some_alike:
                    continue
                sim = block.tile(i)
                if query.turn.max() > gallery.turn.min():
                    sim.masked_fill_((query.turn[:, None] > gallery.turn).to(sim.device), -torch.inf)
                yield sim, (query.code[:, None] == gallery.code).to(sim.device) if some_alike else None


def labelled_pairs(  # noqa: PLR0913 - what every call about pairs may depend on
    embedding: object,
    label: object,
    *,
    item: object = None,
    is_query: object = None,
    is_gallery: object = None,
    similarity: str | Similarity = "cosine",
    memory: str | int = "512MB",
) -> LabelledPairs:
    """Check the input of a verification and cut its pairs into tiles; see `verification` for the arguments.

    Raises:
        ConfigError: an unknown similarity, an unreadable budget, flags that select no row.
        ShapeError: sizes that do not fit each other.
        DataError: embeddings or labels that cannot be used.
    """
    function, budget, x = function_of(similarity), bytes_of(memory), embedding_of(embedding)
    (code,), names = codes_of(label)
    (items,), _ = codes_of(torch.arange(len(x)) if item is None else item, what="item")
    _check_length(code, len(x), "label")
    _check_length(items, len(x), "item")
    asks, answers = _flags(is_query, len(x), "is_query"), _flags(is_gallery, len(x), "is_gallery")
    query, gallery = _sides(code, asks, answers)
    space, step = pair_space(function, x)
    sides, same_item = _taken(x, items, query, gallery)
    grid = grid_of(sides, space, same_item, budget)
    n_pairs = _n_pairs(items[asks], items[answers], items[asks & answers])
    classes = frozenset(names[c] for c in integers(distinct(code[asks | answers])[0]))
    return LabelledPairs(grid, query, gallery, n_pairs, classes, function, step, budget)


def _sides(code: Int[Tensor, " n"], asks: Bool[Tensor, " n"], answers: Bool[Tensor, " n"]) -> tuple[Side, Side]:
    """Sort by class. Two rows that are both query and gallery meet twice: their turns let the pair count once."""
    order = code.argsort(stable=True)
    turn = torch.empty_like(order).scatter_(0, order, torch.arange(len(order)))
    both = asks & answers
    first = order[asks[order]]
    # One tensor where both sides are the same rows: the grid then prepares them once.
    second = first if bool(both[asks | answers].all()) else order[answers[order]]
    return (
        Side(first, code[first], torch.where(both, turn, -1)[first]),
        Side(second, code[second], torch.where(both, turn, len(order))[second]),
    )


def _taken(x: Float[Tensor, "n d"], item: Int[Tensor, " n"], query: Side, gallery: Side) -> tuple[Sides, SameItem]:
    """Return the rows of both sides, each in its order, and which pairs are of one item; nothing is copied where all rows are both."""
    if query.row is gallery.row and len(query.row) == len(x):
        return Sides(x, x, query.row, query.row), SameItem(item, item)
    asked, found = (x[side.row.to(x.device)] for side in (query, gallery))
    return Sides(asked, found, torch.arange(len(asked)), torch.arange(len(found))), SameItem(item[query.row], item[gallery.row])


def _n_pairs(query: Int[Tensor, " a"], gallery: Int[Tensor, " b"], both: Int[Tensor, " c"]) -> int:
    """Return the number of unordered pairs of different items, from the items of queries, gallery rows, and rows that are both."""
    n_items = int(max(query.max(), gallery.max())) + 1
    asked, found, twice = (torch.bincount(items, minlength=n_items) for items in (query, gallery, both))
    ordered = len(query) * len(gallery) - int((asked * found).sum())
    return ordered - (len(both) ** 2 - int(twice.square().sum())) // 2


def _part(side: Side, first: int, size: int) -> Side:
    entries = slice(first, first + size)
    return Side(side.row[entries], side.code[entries], side.turn[entries])


def _check_length(column: Tensor, n: int, name: str) -> None:
    if len(column) != n:
        raise ShapeError(f"{name} has {len(column)} entries for {n} embeddings: pass one for each row.")


def _flags(mask: object, n: int, name: str) -> Bool[Tensor, " n"]:
    if mask is None:
        return torch.ones(n, dtype=torch.bool)
    flags = torch.as_tensor(mask).flatten().bool().cpu()
    _check_length(flags, n, name)
    if not flags.any():
        raise ConfigError(f"{name} selects no row: pass a mask with at least one True, or leave it out.")
    return flags
