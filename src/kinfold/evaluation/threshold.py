"""A threshold fitted on held-out classes, and what it does on others."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from kinfold.errors import ConfigError, DataError
from kinfold.evaluation.labels import Label
from kinfold.evaluation.pair_counts import rates_at
from kinfold.evaluation.pair_tiles import labelled_pairs
from kinfold.evaluation.rates import Rates
from kinfold.evaluation.verification import Verification, name_of, rate_of, verification
from kinfold.records import Similarity

DEFAULT_FAR = 1e-3


@dataclass(frozen=True, eq=False)
class Threshold:
    """The result of `fit_threshold`: accept a pair where similarity >= value.

    Attributes:
        value: the similarity.
        fitted_for: what it was fitted for: `FAR <= 0.001`, `TAR >= 0.9` or `EER`.
        fitted: counts and rates on the pairs that it was fitted on.
        classes: labels that it was fitted on; it is not to be judged by them.
        similarity: the function.
    """

    value: float
    fitted_for: str
    fitted: Rates
    classes: frozenset[Label]
    similarity: Similarity

    def apply(  # noqa: PLR0913 - the data, as `verification` takes it
        self,
        embedding: object,
        label: object,
        *,
        item: object = None,
        is_query: object = None,
        is_gallery: object = None,
        memory: str | int = "512MB",
        allow_shared_classes: bool = False,
    ) -> Rates:
        """Return what the threshold, as it is, does on other data; see `verification` for the arguments.

        Args:
            embedding: (n, d) rows.
            label: n labels.
            item: see `verification`.
            is_query: see `verification`.
            is_gallery: see `verification`.
            memory: see `verification`.
            allow_shared_classes: accept classes that the threshold was fitted on; its rates are then not those on unseen classes.

        Raises:
            DataError: classes that it was fitted on; no pair of one class, or none of different classes.
        """
        pairs = labelled_pairs(
            embedding, label, item=item, is_query=is_query, is_gallery=is_gallery, similarity=self.similarity, memory=memory
        )
        if not allow_shared_classes:
            check_apart(self.classes, pairs.classes)
        return rates_at(pairs, self.value)

    def beside(self, applied: Rates, *, fitted_on: str = "held-out classes", applied_to: str = "other classes") -> str:
        """Return the rates where it was fitted and those elsewhere in one sentence; neither should be told alone.

        Example:
            >>> fitted, applied = Rates(0.7, 60, 100, 2, 1600), Rates(0.7, 55, 100, 3, 1600)
            >>> Threshold(0.7, "FAR <= 0.002", fitted, frozenset(), max).beside(applied, fitted_on="val", applied_to="test")
            'fitted on val: FAR 0.125 %, TAR 60 %; on test: FAR 0.188 %, TAR 55 %'
        """
        return f"fitted on {fitted_on}: {self.fitted}; on {applied_to}: {applied}"

    def to_dict(self) -> dict[str, object]:
        """Return what it is and how it came about as plain values."""
        return {
            "value": self.value,
            "fitted_for": self.fitted_for,
            "similarity": name_of(self.similarity),
            "fitted": self.fitted.to_dict(),
            "n_classes": len(self.classes),
        }

    def to_json(self) -> str:
        """Return the same as one JSON object."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        return f"{name_of(self.similarity)} >= {self.value:.6g}, fitted for {self.fitted_for}: {self.fitted}"

    def __repr__(self) -> str:
        return f"Threshold({self})"


def fit_threshold(  # noqa: PLR0913 - what `verification` takes, and what to fit for
    embedding: object,
    label: object,
    *,
    far: float | None = None,
    tar: float | None = None,
    eer: bool = False,
    item: object = None,
    is_query: object = None,
    is_gallery: object = None,
    similarity: str | Similarity = "cosine",
    memory: str | int = "512MB",
) -> Threshold:
    """Fit a threshold on all pairs of held-out classes: neither trained on, nor those that it will be judged by.

    Fitted on the test pairs, a threshold looks better than it is, most of all at small FAR, where it stands on a few pairs. So it is
    fitted on one set of classes and applied to another, which `Threshold.apply` insists on, and both rates are told.

    Args:
        embedding: (n, d) rows of the held-out classes.
        label: n labels.
        far: the largest TAR with FAR at most this, in (0, 1]; 0.001 if nothing is asked for.
        tar: the smallest FAR with TAR at least this, in (0, 1].
        eer: FAR and 1 - TAR as close as they come.
        item: see `verification`.
        is_query: see `verification`.
        is_gallery: see `verification`.
        similarity: see `verification`.
        memory: see `verification`.

    Raises:
        ConfigError: more than one of `far`, `tar` and `eer`, or one out of range.
        DataError: no pair of one class, none of different classes, or too few negative pairs for this FAR.

    Example:
        >>> held_out = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.2, 0.9]]
        >>> threshold = fit_threshold(held_out, ["cat", "cat", "dog", "dog"], eer=True)
        >>> other = threshold.apply([[1.0, 0.2], [0.8, 0.2], [0.3, 1.0]], ["owl", "owl", "wren"])
        >>> print(threshold.beside(other))
        fitted on held-out classes: FAR 0 %, TAR 100 %; on other classes: FAR 0 %, TAR 100 %
    """
    _check_one(far, tar, eer=eer)
    found = verification(
        embedding, label, item=item, is_query=is_query, is_gallery=is_gallery, similarity=similarity, fars=(), memory=memory
    )
    return threshold_from(found, far=far, tar=tar, eer=eer)


def threshold_from(found: Verification, *, far: float | None = None, tar: float | None = None, eer: bool = False) -> Threshold:
    """Fit a threshold on the pairs of a verification that is there already, which must be of held-out classes; see `fit_threshold`."""
    _check_one(far, tar, eer=eer)
    if eer:
        return Threshold(found.at_eer.threshold, "EER", found.at_eer, found.classes, found.similarity)
    if tar is not None:
        tar = rate_of(tar, "tar")
        rates, fitted_for = found.roc.at_tar(tar), f"TAR >= {tar:g}"
    else:
        far = rate_of(DEFAULT_FAR if far is None else far, "far")
        rates, fitted_for = _at_far(found, far), f"FAR <= {far:g}"
    return Threshold(rates.threshold, fitted_for, rates, found.classes, found.similarity)


def check_apart(fitted: Iterable[Label], applied: Iterable[Label]) -> None:
    """Refuse to judge a threshold by classes that it was fitted on.

    Raises:
        DataError: the two share classes; names the first of them.
    """
    shared = [repr(name) for name in sorted(set(fitted) & set(applied), key=lambda name: (str(type(name)), name))]
    if shared:
        shown = ", ".join(shared[:5]) + (f" and {len(shared) - 5:,} more" if len(shared) > 5 else "")
        raise DataError(
            f"{len(shared)} classes are among those that the threshold was fitted on: {shown}. Its rates would not be those on unseen "
            "classes: fit it on other classes, or accept this with allow_shared_classes."
        )


def _at_far(found: Verification, far: float) -> Rates:
    rates = found.roc.at_far(far)
    if rates is None:
        raise DataError(
            f"no threshold for FAR <= {far:g}: {found.unresolved(far)}. Hold out more classes, or ask for a larger FAR."
        )
    if not math.isfinite(rates.threshold):
        raise DataError(
            f"no threshold for FAR <= {far:g}: more than {far * found.n_negative:.0f} negative pairs are more alike than every positive "
            "pair, so that nothing could be accepted. Ask for a larger FAR."
        )
    return rates


def _check_one(far: float | None, tar: float | None, *, eer: bool) -> None:
    if (far is not None) + (tar is not None) + eer > 1:
        raise ConfigError(f"far = {far}, tar = {tar}, eer = {eer}: fit a threshold for one of them.")
