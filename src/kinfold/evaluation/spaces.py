"""What each similarity does once for a row, and once for a pair of blocks."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from kinfold.core.similarity import SIMILARITIES, cosine, dot, negative_euclidean, negative_squared_euclidean
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.records import Similarity

TIE_ULPS = 4
ROWS_A_STEP = 4096

Prepare = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Space:
    """A similarity, split into what a row needs once and what a pair of blocks needs.

    Attributes:
        query: prepares query rows.
        gallery: prepares gallery rows.
        sim: similarity of two prepared blocks; `None` means their matrix product.
        bounded: similarities lie in [-1, 1], so that rounding is relative to 1 and not to the value.
    """

    query: Prepare
    gallery: Prepare
    sim: Similarity | None
    bounded: bool = False


def function_of(similarity: str | Similarity) -> Similarity:
    """Return the similarity of that name; a function is returned as it is.

    Raises:
        ConfigError: the name is not known.
    """
    if not isinstance(similarity, str):
        return similarity
    if similarity not in SIMILARITIES:
        raise ConfigError(f"similarity `{similarity}` is not known; {did_you_mean(similarity, SIMILARITIES)}")
    return SIMILARITIES[similarity]


def space_of(similarity: str | Similarity, query: Float[Tensor, "n d"], gallery: Float[Tensor, "m d"]) -> Space:
    """Return how to rank by a similarity: cosine, dot and the Euclidean ones as one product, any other as it is.

    The Euclidean ones become |g|² - 2 q·g in float64, centred on the gallery: the same order, at the price of a product.
    """
    function, dtype = function_of(similarity), torch.promote_types(query.dtype, gallery.dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    if function is cosine:
        unit = _unit(wide)
        return Space(unit, unit, None, bounded=True)
    if function is dot:
        _check_overflow(query, gallery, wide)
        widen = _widen(wide)
        return Space(widen, widen, None)
    if function is negative_euclidean or function is negative_squared_euclidean:
        _check_overflow(query, gallery, torch.float64)
        return _euclidean(gallery)
    return plain_space(function, wide)


def plain_space(function: Similarity, dtype: torch.dtype) -> Space:
    """Return a space that calls a similarity on blocks of the rows themselves."""
    widen = _widen(dtype)
    return Space(widen, widen, function)


def _widen(dtype: torch.dtype) -> Prepare:
    return lambda x: x.to(dtype)


def _unit(dtype: torch.dtype) -> Prepare:
    """Scale rows to length 1; a zero row stays zero. Dividing by the largest entry first keeps huge and tiny rows from overflow."""

    def prepare(x: Tensor) -> Tensor:
        x = x.to(dtype)
        largest = x.abs().amax(dim=1, keepdim=True)
        x = x / torch.where(largest > 0, largest, 1)
        return x / x.square().sum(dim=1, keepdim=True).sqrt().clamp_min(torch.finfo(dtype).tiny)

    return prepare


def _euclidean(gallery: Float[Tensor, "m d"]) -> Space:
    steps = range(0, len(gallery), ROWS_A_STEP)
    centre = torch.stack([gallery[i : i + ROWS_A_STEP].double().sum(dim=0) for i in steps]).sum(dim=0) / len(gallery)

    def query_rows(x: Tensor) -> Tensor:
        x = x.double() - centre
        return torch.cat([2 * x, -torch.ones_like(x[:, :1])], dim=1)

    def gallery_rows(x: Tensor) -> Tensor:
        x = x.double() - centre
        return torch.cat([x, x.square().sum(dim=1, keepdim=True)], dim=1)

    return Space(query_rows, gallery_rows, None)


def _check_overflow(query: Tensor, gallery: Tensor, dtype: torch.dtype) -> None:
    product = _largest(query) * _largest(gallery) * query.shape[1]
    if not 4 * product < torch.finfo(dtype).max:
        raise DataError(f"products of these embeddings overflow {dtype}: scale them down, or pass them as float64.")


def _largest(x: Float[Tensor, "n d"]) -> float:
    low, high = torch.aminmax(x)
    return max(-float(low), float(high))
