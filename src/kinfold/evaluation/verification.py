"""Embeddings and labels → how well a threshold on similarity tells pairs of one class from pairs of different classes."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from kinfold.errors import ConfigError
from kinfold.evaluation.labels import Label
from kinfold.evaluation.pair_counts import pair_counts
from kinfold.evaluation.pair_tiles import labelled_pairs
from kinfold.evaluation.rates import Rates
from kinfold.evaluation.roc import Roc, area, equal_error_rate, roc_of
from kinfold.records import Similarity

FARS = (1e-4, 1e-3, 1e-2, 1e-1)


@dataclass(frozen=True, eq=False)
class Verification:
    """The result of `verification`.

    Attributes:
        roc: the exact curve.
        auc: area under it: the chance that a positive pair is more alike than a negative one; 0.5 is chance.
        eer: equal error rate, where FAR = 1 - TAR; interpolated, in [0, 1].
        at_eer: the point of the curve nearest to equal errors, with its threshold.
        tar_at_far: by the FAR that was asked for, the point with the largest TAR within it; `None` where there are too few negative
            pairs to tell that FAR from 0.
        classes: labels of the rows that took part.
        similarity: the function.
    """

    roc: Roc
    auc: float
    eer: float
    at_eer: Rates
    tar_at_far: Mapping[float, Rates | None]
    classes: frozenset[Label]
    similarity: Similarity

    @property
    def n_positive(self) -> int:
        """Pairs of one class."""
        return self.roc.n_positive

    @property
    def n_negative(self) -> int:
        """Pairs of different classes."""
        return self.roc.n_negative

    def to_dict(self) -> dict[str, object]:
        """Return rates, thresholds and counts as plain values; the curve itself is left out."""
        return {
            "auc": self.auc,
            "eer": self.eer,
            "at_eer": self.at_eer.to_dict(),
            "tar_at_far": {f"{far:g}": None if rates is None else rates.to_dict() for far, rates in self.tar_at_far.items()},
            "n_positive": self.n_positive,
            "n_negative": self.n_negative,
            "n_classes": len(self.classes),
            "similarity": name_of(self.similarity),
        }

    def to_json(self) -> str:
        """Return the same as one JSON object."""
        return json.dumps(self.to_dict(), indent=2)

    def unresolved(self, far: float) -> str:
        """Say why there is no point at a FAR that was asked for."""
        return (
            f"not resolved: {far:g} of {self.n_negative:,} negative pairs is less than one false accept; "
            f"the smallest FAR they can tell from 0 is {1 / self.n_negative:.2g}"
        )

    def __str__(self) -> str:
        rows = [("auc", f"{100 * self.auc:6.2f}"), ("eer", f"{100 * self.eer:6.2f}  at similarity {self.at_eer.threshold:.4g}")]
        rows += [(f"tar_at_far_{far:g}", self._point(far, rates)) for far, rates in self.tar_at_far.items()]
        width = max(len(name) for name, _ in rows)
        return "\n".join([*(f"{name:<{width}}  {text}" for name, text in rows), self._counts()])

    def __repr__(self) -> str:
        return f"Verification(auc={100 * self.auc:.2f}, eer={100 * self.eer:.2f}; {self._counts()})"

    def _counts(self) -> str:
        return f"{self.n_positive:,} positive and {self.n_negative:,} negative pairs"

    def _point(self, far: float, rates: Rates | None) -> str:
        if rates is None:
            return f"     –  {self.unresolved(far)}"
        where = f"at similarity {rates.threshold:.4g}" if math.isfinite(rates.threshold) else "nothing can be accepted"
        return (
            f"{100 * rates.tar:6.2f}  {where}, {rates.n_false_accepts:,} false accept{'' if rates.n_false_accepts == 1 else 's'}"
        )


def verification(  # noqa: PLR0913 - one call holds everything that a verification may depend on
    embedding: object,
    label: object,
    *,
    is_query: object = None,
    is_gallery: object = None,
    item: object = None,
    similarity: str | Similarity = "cosine",
    fars: object = FARS,
    memory: str | int = "512MB",
) -> Verification:
    """Measure how well "similarity >= threshold" decides whether two images are of one class, from all pairs exactly.

    TAR(t) = |{positive pairs with s >= t}| / |positive pairs|,  FAR(t) = |{negative pairs with s >= t}| / |negative pairs|

    Each unordered pair counts once, none is sampled, and rows of one item are never a pair. Pairs that tie share one threshold, so a
    collapsed embedding has AUC 0.5. Cosines are rounded to multiples of 2^-19, about 2e-6, first (2^-44 for float64): more than the noise
    of their computation, which would else split what ties.

    A threshold read off here was chosen on these very pairs: on others it does worse. `fit_threshold` fits it on held-out classes.

    Args:
        embedding: (n, d) rows: tensor on any device, array or list; finite. Computed in float32, float64 stays.
        label: n strings or integers of any size; a pair is positive where they are equal.
        is_query: which rows ask; `None`: all.
        is_gallery: which rows answer; `None`: all. With flags a pair is one of a query and a gallery row.
        item: which image each row shows, strings or integers; default: every row its own.
        similarity: `cosine`, `dot`, `negative_euclidean`, …, or a symmetric function (n, d), (m, d) → (n, m), larger = more alike.
        fars: false accept rates in (0, 1] to report the TAR at; one or several.
        memory: budget for what is held besides the embeddings and the distinct similarities of positive pairs, such as "512MB"; values
            do not depend on it.

    Returns:
        Curve, AUC, EER and TAR at each FAR; see `Verification`.

    Raises:
        ConfigError: a setting is unknown or out of range.
        ShapeError: sizes that do not fit each other.
        DataError: embeddings or labels that cannot be used; no pair of one class, or none of different classes.

    Example:
        >>> x = [[1.0, 0.0], [0.9, 0.1], [0.6, 0.8], [0.0, 1.0]]
        >>> found = verification(x, ["cat", "cat", "cat", "dog"], fars=(0.5, 0.01))
        >>> print(found)
        auc               77.78
        eer               33.33  at similarity 0.6847
        tar_at_far_0.5   100.00  at similarity 0.6, 1 false accept
        tar_at_far_0.01       –  not resolved: 0.01 of 3 negative pairs is less than one false accept; the smallest FAR they can tell from 0 is 0.33
        3 positive and 3 negative pairs

    Reference:
        Phillips et al., "An introduction to evaluating biometric systems", Computer 33(2), 2000.
    """
    wanted = false_accept_rates(fars)
    pairs = labelled_pairs(
        embedding, label, item=item, is_query=is_query, is_gallery=is_gallery, similarity=similarity, memory=memory
    )
    counts = pair_counts(pairs)
    roc = roc_of(counts)
    at_far = {far: roc.at_far(far) for far in wanted}
    return Verification(
        roc, area(counts), equal_error_rate(counts), roc.at_equal_error(), at_far, pairs.classes, pairs.similarity
    )


def false_accept_rates(fars: object) -> tuple[float, ...]:
    """Return one or several false accept rates, each checked, in the given order and without repetition.

    Raises:
        ConfigError: one is no number in (0, 1].
    """
    if isinstance(fars, str) or not isinstance(fars, Iterable):
        return (rate_of(fars, "far"),)
    return tuple(dict.fromkeys(rate_of(far, "far") for far in cast("Iterable[object]", fars)))


def rate_of(value: object, name: str) -> float:
    """Return a rate as a float.

    Raises:
        ConfigError: it is no number in (0, 1].
    """
    try:
        rate = float(cast("float", value))
    except (TypeError, ValueError):
        rate = math.nan
    if isinstance(value, bool) or not 0 < rate <= 1:
        raise ConfigError(f"{name} is {value!r}, but must be a number above 0 and at most 1, such as 0.001.")
    return rate


def name_of(similarity: Similarity) -> str:
    """Return what a similarity is called."""
    return str(getattr(similarity, "__name__", repr(similarity)))
