"""Frozen records handed between layers; every interface of the library is made of these."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Similarity = Callable[[Tensor, Tensor], Tensor]
"""(n, d), (m, d) → (n, m); larger means more alike."""


@dataclass(frozen=True)
class Pairs:
    """What each entry of a similarity matrix should be: alike, different, or neither (ignored).

    Attributes:
        positive: row i and column j should be alike.
        negative: row i and column j should differ.
        margin: subtracted from the similarity before the loss sees it: `loss(sim, margin=m) == loss(sim - m)`.
        weight: multiplies the pair's innermost term; `None` means all ones. Averages divide by the *number* of pairs.
    """

    positive: Bool[Tensor, "n m"]
    negative: Bool[Tensor, "n m"]
    margin: Float[Tensor, "n m"] | float = 0.0
    weight: Float[Tensor, "n m"] | None = None


@dataclass(frozen=True)
class Triplets:
    """Index triplets (row of the anchor, column of the positive, column of the negative).

    Attributes:
        anchor: row of the similarity matrix.
        positive: column that should be more alike than `negative`.
        negative: column that should be less alike.
        weight: the product of the weights of the two pairs; `None` means all ones.
    """

    anchor: Int[Tensor, " t"]
    positive: Int[Tensor, " t"]
    negative: Int[Tensor, " t"]
    weight: Float[Tensor, " t"] | None = None


Loss = Callable[[Tensor, Pairs], Tensor]
"""(sim, pairs) → scalar, hyperparameters bound by `functools.partial`."""

Miner = Callable[[Tensor, Pairs], Pairs]
"""(sim, pairs) → the pairs worth training on."""


@dataclass(frozen=True)
class Batch:
    """What the loader hands to the engine.

    Attributes:
        image: preprocessed images (n, 3, h, w), or what a frozen part of the model made of them.
        label: class number of each image, counted over the training classes.
        item: row of the data table; the views of one image share it.
        view: 0 for the ordinary training view, 1, 2, … for extra views.
    """

    image: Float[Tensor, "n ..."]
    label: Int[Tensor, " n"]
    item: Int[Tensor, " n"]
    view: Int[Tensor, " n"]


@dataclass(frozen=True)
class Embedded:
    """What a model made of a batch, or of a whole data set.

    Attributes:
        embedding: output of the head, as the model gave it (not normalised).
        feature: pooled trunk output, before the head.
        label: class as given (possibly noisy).
        item: row of the data table.
        view: 0 for the ordinary view.
    """

    embedding: Float[Tensor, "n d"]
    feature: Float[Tensor, "n f"]
    label: Int[Tensor, " n"]
    item: Int[Tensor, " n"]
    view: Int[Tensor, " n"]


@dataclass(frozen=True)
class Losses:
    """The terms that an objective adds up, already weighted; their names are the log's column names.

    Attributes:
        terms: name → scalar.
    """

    terms: Mapping[str, Float[Tensor, ""]]

    @property
    def total(self) -> Float[Tensor, ""]:
        """The sum of all terms: what is minimised."""
        return torch.stack(list(self.terms.values())).sum()


@dataclass(frozen=True)
class ParamGroup:
    """Parameters that share a learning rate, a weight decay and a schedule, under a name that the configuration can use.

    Attributes:
        name: `trunk`, `head`, `proxies`, …
        params: the parameters.
        lr_scale: multiplies the run's learning rate (proxies often learn 100 × faster than the trunk).
        weight_decay: `None` means the run's default.
        kind: an optimiser of its own, such as `adamw`; `None` means the run's.
        learning_rate: a learning rate of its own, whatever the run's is; `None`: `lr_scale` times the run's.
        eps: of its optimiser; `None` means the run's.
    """

    name: str
    params: list[nn.Parameter]
    lr_scale: float = 1.0
    weight_decay: float | None = None
    kind: str | None = None
    learning_rate: float | None = None
    eps: float | None = None


@dataclass(frozen=True)
class Neighbours:
    """The nearest gallery rows of each query, most alike first; ties by gallery row. Lists end where a query's candidates end.

    Attributes:
        index: gallery rows, all queries one after the other.
        sim: their similarities.
        start: query i owns the entries `start[i]` to `start[i + 1]`.
    """

    index: Int[Tensor, " t"]
    sim: Float[Tensor, " t"]
    start: Int[Tensor, " n1"]

    def of(self, query: int) -> tuple[Int[Tensor, " k"], Float[Tensor, " k"]]:
        """Return the gallery rows and similarities of one query."""
        entries = slice(int(self.start[query]), int(self.start[query + 1]))
        return self.index[entries], self.sim[entries]


class Batches(Protocol):
    """Batches in an order that the epoch's number alone decides, so that training can resume in the middle of an epoch."""

    def __len__(self) -> int:
        """Number of batches in an epoch."""
        ...

    @property
    def position(self) -> int:
        """Number of batches of the running epoch that were handed out, or left out because none of their images can be read."""
        ...

    def prepare(self, epoch: int) -> None:
        """Do beforehand what takes long and is done once; it may be interrupted at any moment."""
        ...

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Batch]:
        """Yield the epoch's batches from number `start` on."""
        ...


class TrainSet(Protocol):
    """The training set as an objective may ask for it at the start of an epoch."""

    @property
    def n_classes(self) -> int:
        """Number of training classes."""
        ...

    def embed(self, view: int = 0) -> Embedded:
        """Embed the whole training set in table order, evaluation transform for view 0; computed once per epoch when asked for."""
        ...
