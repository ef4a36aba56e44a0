"""What a threshold does to pairs: how many it accepts rightly and wrongly."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """Counts at one threshold, and the rates that follow from them; a pair is accepted where similarity >= threshold.

    Attributes:
        threshold: the similarity; `inf` accepts nothing.
        n_true_accepts: accepted pairs of one class.
        n_positive: all pairs of one class.
        n_false_accepts: accepted pairs of different classes.
        n_negative: all pairs of different classes.

    Example:
        >>> rates = Rates(0.7, n_true_accepts=60, n_positive=100, n_false_accepts=2, n_negative=1600)
        >>> print(rates)
        FAR 0.125 %, TAR 60 %
        >>> rates.accuracy
        0.9752941176470589
    """

    threshold: float
    n_true_accepts: int
    n_positive: int
    n_false_accepts: int
    n_negative: int

    @property
    def tar(self) -> float:
        """True accept rate: share of the pairs of one class that are accepted, in [0, 1]."""
        return self.n_true_accepts / self.n_positive

    @property
    def far(self) -> float:
        """False accept rate: share of the pairs of different classes that are accepted, in [0, 1]."""
        return self.n_false_accepts / self.n_negative

    @property
    def accuracy(self) -> float:
        """Share of all pairs that are decided rightly; mostly about negatives, which are many more."""
        return (self.n_true_accepts + self.n_negative - self.n_false_accepts) / (self.n_positive + self.n_negative)

    def to_dict(self) -> dict[str, float | int | None]:
        """Return rates and counts for JSON; an infinite threshold is `None`."""
        return {
            "threshold": self.threshold if math.isfinite(self.threshold) else None,
            "far": self.far,
            "tar": self.tar,
            "accuracy": self.accuracy,
            "n_true_accepts": self.n_true_accepts,
            "n_positive": self.n_positive,
            "n_false_accepts": self.n_false_accepts,
            "n_negative": self.n_negative,
        }

    def __str__(self) -> str:
        return f"FAR {100 * self.far:.3g} %, TAR {100 * self.tar:.3g} %"
