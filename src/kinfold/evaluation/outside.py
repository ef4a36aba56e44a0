"""Neighbours outside a query's own class: how many of them share its super-category."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.errors import ConfigError, DataError, ShapeError
from kinfold.evaluation.cutoffs import cutoff
from kinfold.evaluation.evaluate import score
from kinfold.evaluation.intervals import Interval, bootstrap_interval
from kinfold.evaluation.labels import Label, codes_of
from kinfold.evaluation.typed import integers
from kinfold.records import Similarity


@dataclass(frozen=True, eq=False)
class OutsideShare:
    """The result of `outside_share`.

    Attributes:
        k: neighbours that are looked at.
        share: mean over the queries, in [0, 1].
        chance: what a random order of the same candidates gives on average, in [0, 1].
        per_query: one share for each query.
        chance_per_query: what chance gives each of them.
        query: row of each query, ascending.
        label: class of each query, as an index into `class_names`.
        class_names: labels as they were given.
        alone: rows of the queries that are left out: the gallery has no other class of their super-category.
    """

    k: int
    share: float
    chance: float
    per_query: Float[Tensor, " s"]
    chance_per_query: Float[Tensor, " s"]
    query: Int[Tensor, " s"]
    label: Int[Tensor, " s"]
    class_names: list[Label]
    alone: Int[Tensor, " u"]

    def interval(self, over: str = "query", level: float = 0.95, seed: int = 0) -> Interval:
        """Return the bootstrap interval of the share, drawing queries or whole classes again (see `bootstrap_interval`)."""
        return bootstrap_interval(self.per_query, self.label, over=over, level=level, seed=seed)

    def to_dict(self) -> dict[str, int | float]:
        """Return the numbers alone."""
        counts = {"n_scored": len(self.query), "n_alone": len(self.alone)}
        return {"k": self.k, "share": self.share, "chance": self.chance, **counts}

    def __str__(self) -> str:
        lone = f"; {len(self.alone):,} without another class in theirs left out" if len(self.alone) else ""
        return (
            f"of the {self.k} nearest outside the own class {100 * self.share:.1f} % share the super-category "
            f"(chance {100 * self.chance:.1f} %); {len(self.query):,} queries{lone}"
        )


def outside_share(  # noqa: PLR0913 - the settings of `score`, with a second label
    embedding: object,
    label: object,
    group: object,
    *,
    k: int = 10,
    gallery: object = None,
    gallery_label: object = None,
    gallery_group: object = None,
    similarity: str | Similarity = "cosine",
    memory: str | int = "512MB",
) -> OutsideShare:
    """Measure whether the classes nearest to a class are its relatives, whatever the model does within classes.

        share_q = (rows of q's super-category among the k nearest rows of other classes than q's) / k
        chance_q = (rows of q's super-category in other classes) / (rows of other classes)

    1: the space is sorted by super-category around every class; `chance`: the classes lie in any order. The share grows with the
    number of relatives there are, so compare models on the same rows, or each with its chance. Ties count with their mean over all orders,
    and k is clipped to the number of candidates. Queries without another class in their super-category are left out: they can find nothing.

    Args:
        embedding: (n, d) queries, as `score` takes them.
        label: n classes.
        group: n super-categories; every class lies in one.
        k: neighbours to look at; at least 1.
        gallery: (m, d) embeddings to search; `None`: the queries themselves.
        gallery_label: m classes; needed with `gallery`.
        gallery_group: m super-categories; needed with `gallery`.
        similarity: see `score`.
        memory: see `score`.

    Raises:
        ConfigError: k below 1, an unknown similarity, a gallery without its labels or groups.
        ShapeError: columns that do not fit the embeddings.
        DataError: a class in two super-categories, no query with another class in its own, or embeddings that cannot be used.

    Example:
        >>> x = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.3], [0.0, 1.0]]
        >>> print(outside_share(x, ["oak", "oak", "elm", "fly"], ["tree", "tree", "tree", "insect"], k=1))
        of the 1 nearest outside the own class 100.0 % share the super-category (chance 55.6 %); 3 queries; 1 without another class in theirs left out
    """
    k, columns = cutoff(k), _columns(label, group, (gallery, gallery_label, gallery_group))
    (code, *others), names = codes_of(*columns["label"])
    (group_code, *group_others), group_names = codes_of(*columns["group"], what="group")
    code_found, group_found = (others or [code])[0], (group_others or [group_code])[0]
    _check_groups((code, code_found), (group_code, group_found), names, group_names)
    n_class, n_group = torch.bincount(code_found, minlength=len(names)), torch.bincount(group_found, minlength=len(group_names))
    n_relatives, n_others = n_group[group_code] - n_class[code], len(code_found) - n_class[code]
    if not n_relatives.any():
        raise DataError(f"no query has another class in its super-category: {len(group_names)} groups hold {len(names)} classes.")
    scores = score(
        embedding,
        group_code,
        gallery=gallery,
        gallery_label=group_others[0] if group_others else None,
        item=code,  # rows of one class count as one item: a query never finds them
        gallery_item=others[0] if others else None,
        metrics=f"precision_at_{k}",
        similarity=similarity,
        memory=memory,
    )
    query, value = scores.query, scores.per_query[f"precision_at_{k}"]
    chance = n_relatives[query].double() / n_others[query]
    return OutsideShare(k, float(value.mean()), float(chance.mean()), value, chance, query, code[query], names, scores.skipped)


def _columns(label: object, group: object, gallery: tuple[object, object, object]) -> Mapping[str, list[object]]:
    """Return the label columns and the group columns of both sides."""
    given = [column is not None for column in gallery]
    if any(given) and not all(given):
        raise ConfigError("gallery, gallery_label and gallery_group go together: pass all three, or none.")
    return {"label": [label, gallery[1]], "group": [group, gallery[2]]} if all(given) else {"label": [label], "group": [group]}


def _check_groups(
    codes: tuple[Tensor, Tensor], groups: tuple[Tensor, Tensor], names: list[Label], group_names: list[Label]
) -> None:
    """Refuse columns of other lengths, and a class that lies in two groups."""
    for code, group in zip(codes, groups, strict=True):
        if len(code) != len(group):
            raise ShapeError(f"group has {len(group)} entries for {len(code)} labels: pass one for each row.")
    code, group = torch.cat(codes), torch.cat(groups)
    pair = distinct(code * len(group_names) + group)[0]
    of_class = pair.div(len(group_names), rounding_mode="floor")
    twice = integers((of_class[1:] == of_class[:-1]).nonzero().flatten())
    if twice:
        first, second = (group_names[i] for i in integers(pair[twice[0] : twice[0] + 2] % len(group_names)))
        raise DataError(
            f"class {names[int(of_class[twice[0]])]!r} lies in two super-categories, {first!r} and {second!r}: each class needs one."
        )
