"""How well embeddings fit a hierarchy of classes: recall by level, and how far off the nearest are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.hierarchy import Hierarchy, Name
from kinfold.errors import ConfigError, DataError
from kinfold.evaluation.cutoffs import cutoffs
from kinfold.evaluation.evaluate import score
from kinfold.evaluation.hierarchy_scores import HierarchyScores
from kinfold.evaluation.labels import Label, codes_of
from kinfold.evaluation.scores import Scores
from kinfold.records import Similarity


@dataclass(frozen=True)
class Found:
    """What was found of every level, finest (the classes themselves) first; k is clipped to the number of candidates.

    Attributes:
        precision: k → expected share of a query's own group among its k nearest, by level.
        n_relevant: candidates of a query's own group, by level.
        n_candidates: that a query may find.
    """

    precision: Mapping[int, Float[Tensor, "levels n"]]
    n_relevant: Int[Tensor, "levels n"]
    n_candidates: Int[Tensor, " n"]

    def lca_height(self, k: int) -> Float[Tensor, " n"]:
        """Return the expected mean height of the lowest common ancestors with the k nearest; NaN without candidates."""
        height = (1 - self.precision[k]).clamp_min(0).sum(dim=0)
        return height.masked_fill(self.n_candidates == 0, torch.nan)

    def hierarchical_precision(self, k: int) -> Float[Tensor, " n"]:
        """Return the expected HP@k; NaN where no candidate shares any level."""
        k_of_query = self.n_candidates.clamp_max(k)
        best = torch.minimum(k_of_query, self.n_relevant).sum(dim=0)
        return (k_of_query * self.precision[k].sum(dim=0) / best).clamp_max(1)  # 0 / 0 is NaN


def score_hierarchy(  # noqa: PLR0913 - the settings of `score`, and a hierarchy
    embedding: object,
    label: object,
    hierarchy: Hierarchy,
    *,
    gallery: object = None,
    gallery_label: object = None,
    item: object = None,
    gallery_item: object = None,
    ks: object = (1, 5, 10),
    similarity: str | Similarity = "cosine",
    memory: str | int = "512MB",
) -> HierarchyScores:
    """Measure how well the nearest neighbours respect a hierarchy of classes.

    With L levels above the classes, h(a, b) in 0 … L + 1 the height of the lowest common ancestor of two classes (`Hierarchy.lca_height`),
    y_1, y_2, … the classes of the items nearest to a query q of class y, and N its candidates:

        recall_at_k, level by level: 1 if one of the k nearest lies in q's group, else 0; in [0, 1]
        lca_height_at_k = 1/k Σ over i ≤ k of h(y, y_i); in [0, L + 1], smaller is better
        hierarchical_precision_at_k = Σ over i ≤ k of s(y, y_i) / max over sets K of k candidates of Σ over i in K of s(y, y_i),
            where s = 1 - h / (L + 1); in [0, 1]
        mistake_severity = mean of h(y, y_1) over the queries where y_1 ≠ y; in [1, L + 1], smaller is better

    k is clipped to N. An item never finds itself. Ties count with their mean over all orders; the severity is then the ratio of two
    expected values, that of Σ h(y, y_1) and that of the number of mistakes.

    A query whose class has no other item is left out of `recall_at_k` of `label` alone: its nearest items still lie nearer or
    further in the hierarchy, and its nearest is a mistake for sure. A query that shares no level with any candidate has no hierarchical
    precision, since every order is then as good; one without candidates is left out of everything.

    A severity falls also where easy mistakes are *added*: read it beside recall and `lca_height_at_1`, its product with the share of
    mistakes.

    Args:
        embedding: (n, d) queries, as `score` takes them.
        label: n classes, by the names that the hierarchy has.
        hierarchy: may hold more classes.
        gallery: (m, d) embeddings to search; `None`: the queries themselves.
        gallery_label: m classes; needed with `gallery`.
        item: see `score`.
        gallery_item: see `score`.
        ks: cut-offs; any size.
        similarity: see `score`.
        memory: see `score`.

    Raises:
        ConfigError: no k, an unknown similarity, sides that are named by halves.
        ShapeError: sizes that do not fit each other.
        DataError: a class that the hierarchy does not have, embeddings that cannot be used, or no query with a candidate.

    Example:
        >>> from kinfold.core.hierarchy import hierarchy_from_groups
        >>> tree = hierarchy_from_groups(["oak", "elm", "fly"], {"kind": ["tree", "tree", "insect"]})
        >>> x = [[1.0, 0.0], [0.9, 0.1], [0.8, 0.3], [0.0, 1.0]]
        >>> print(score_hierarchy(x, ["oak", "elm", "elm", "fly"], tree, ks=[1]))
                                        @1
        recall, label (%)            50.00
        recall, kind (%)            100.00
        hierarchical precision (%)   83.33
        LCA height (0 to 2)          1.000
        mistake severity 1.333: mean LCA height where the nearest is of another class (3 of 4 queries)

    Reference:
        Barz & Denzler, Hierarchy-based Image Embeddings for Semantic Image Retrieval, WACV 2019 (hierarchical precision);
        Bertinetto et al., Making Better Mistakes, CVPR 2020 (height of the top k, severity of mistakes).
    """
    wanted, code = _ks(ks), _codes(label, hierarchy, "label")
    other = None if gallery_label is None else _codes(gallery_label, hierarchy, "gallery_label")
    of_class = [torch.arange(len(hierarchy.classes)), *hierarchy.codes]
    scores = [
        score(
            embedding,
            group[code],
            gallery=gallery,
            gallery_label=None if other is None else group[other],
            item=item,
            gallery_item=gallery_item,
            ks=(1, *wanted),
            similarity=similarity,
            metrics=("recall_at_k", "precision_at_k"),
            empty="neg",  # all queries stay; those without anything to find are left out below
            memory=memory,
        )
        for group in of_class
    ]
    items = _items(item, gallery_item, len(code)) if gallery is None or item is not None else None
    found = _found(scores, of_class, (code, code if other is None else other), items, (1, *wanted))
    named = zip(
        ("label", *hierarchy.names), scores, (hierarchy.classes, *(level.groups for level in hierarchy.levels)), strict=True
    )
    return _result(found, code, {level: _recall(each, groups, wanted) for level, each, groups in named}, wanted)


def _found(
    scores: Sequence[Scores],
    of_class: Sequence[Int[Tensor, " classes"]],
    codes: tuple[Int[Tensor, " n"], Int[Tensor, " m"]],
    items: tuple[Int[Tensor, " n"], Int[Tensor, " m"]] | None,
    ks: Sequence[int],
) -> Found:
    code, other = codes
    return Found(
        {k: torch.stack([each.per_query[_share_at(k)] for each in scores]) for k in ks},
        torch.stack([_n_to_find(group[code], group[other], items) for group in of_class]),
        _n_to_find(torch.zeros_like(code), torch.zeros_like(other), items),
    )


def _share_at(k: int) -> str:
    """Return the metric that is the share among the k nearest: of one, recall, which is exact where all that tie are of one group."""
    return "recall_at_1" if k == 1 else f"precision_at_{k}"


def _result(found: Found, code: Int[Tensor, " n"], recall: Mapping[str, Scores], ks: Sequence[int]) -> HierarchyScores:
    rows = found.n_candidates.nonzero().flatten()
    if not len(rows):
        raise DataError("no query has anything to find: the gallery holds nothing but the queries' own items.")
    value = {f"lca_height_at_{k}": found.lca_height(k)[rows] for k in ks}
    value |= {f"hierarchical_precision_at_{k}": found.hierarchical_precision(k)[rows] for k in ks}
    mistaken = (1 - found.precision[1][0])[rows].sum()
    severity = found.lca_height(1)[rows].sum() / mistaken  # without a mistake NaN
    metrics = {name: float(x.nanmean()) for name, x in value.items()} | {"mistake_severity": float(severity)}
    return HierarchyScores(recall, metrics, value, rows, code[rows], len(recall), float(mistaken))


def _recall(scores: Scores, groups: Sequence[Name], ks: Sequence[int]) -> Scores:
    """Return the recall of a level alone, without the queries that have nothing to find there."""
    keep = torch.ones(len(scores.query), dtype=torch.bool)
    keep[scores.skipped] = False
    value = {f"recall_at_{k}": scores.per_query[f"recall_at_{k}"][keep] for k in ks}
    return replace(
        scores,
        metrics={name: float(x.mean()) for name, x in value.items()},
        per_query=value,
        query=scores.query[keep],
        label=scores.label[keep],
        class_names=[groups[int(code)] for code in scores.class_names],
        settings={**scores.settings, "empty": "skip"},
    )


def _ks(ks: object) -> tuple[int, ...]:
    wanted = cutoffs(ks)
    if not wanted:
        raise ConfigError("ks is empty: name at least one k.")
    return wanted


def _codes(label: object, hierarchy: Hierarchy, what: str) -> Int[Tensor, " n"]:
    """Return the number of each row's class in the hierarchy."""
    (code,), names = codes_of(label, what=what)
    place: dict[Label, int] = {name: i for i, name in enumerate(hierarchy.classes)}
    missing = [name for name in names if name not in place]
    if missing:
        raise DataError(
            f"{what}: {len(missing)} of {len(names)} classes are not in the hierarchy, such as {missing[0]!r}. Names must be equal, "
            "the number 1 is not the text '1': add them to the hierarchy, or leave their rows out."
        )
    return torch.tensor([place[name] for name in names], dtype=torch.long)[code]


def _items(item: object, gallery_item: object, n: int) -> tuple[Int[Tensor, " n"], Int[Tensor, " m"]]:
    """Return the item codes of both sides."""
    if gallery_item is not None:
        (of_query, of_gallery), _ = codes_of(item, gallery_item, what="item")
        return of_query, of_gallery
    (of_query,), _ = codes_of(torch.arange(n) if item is None else item, what="item")
    return of_query, of_query


def _n_to_find(
    code: Int[Tensor, " n"], other: Int[Tensor, " m"], items: tuple[Int[Tensor, " n"], Int[Tensor, " m"]] | None
) -> Int[Tensor, " n"]:
    """Return how many gallery rows of each query's group are not of its own item."""
    n_codes = int(torch.cat([code, other]).max()) + 1
    n = torch.bincount(other, minlength=n_codes)[code]
    if items is None:
        return n
    own, present = items[0] * n_codes + code, (items[1] * n_codes + other).sort().values
    return n - (torch.searchsorted(present, own, right=True) - torch.searchsorted(present, own))
