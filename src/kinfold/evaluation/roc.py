"""Counts by similarity → the exact curve of true against false accepts, its area, and the points that people ask for."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.evaluation.pair_counts import PairCounts
from kinfold.evaluation.rates import Rates


@dataclass(frozen=True, eq=False)
class Roc:
    """One point for each distinct similarity of a positive pair, which is where the true accept rate changes.

    Attributes:
        threshold: similarities, descending; a pair is accepted where similarity >= threshold.
        n_true_accepts: positive pairs accepted, ascending.
        n_false_accepts: negative pairs accepted, never descending.
        n_positive: all positive pairs.
        n_negative: all negative pairs.
    """

    threshold: Float[Tensor, " t"]
    n_true_accepts: Int[Tensor, " t"]
    n_false_accepts: Int[Tensor, " t"]
    n_positive: int
    n_negative: int

    @property
    def tar(self) -> Float[Tensor, " t"]:
        """True accept rate at each threshold; the last is 1."""
        return self.n_true_accepts.double() / self.n_positive

    @property
    def far(self) -> Float[Tensor, " t"]:
        """False accept rate at each threshold."""
        return self.n_false_accepts.double() / self.n_negative

    def at(self, point: int) -> Rates:
        """Return the counts at one point of the curve."""
        n_true, n_false = int(self.n_true_accepts[point]), int(self.n_false_accepts[point])
        return Rates(float(self.threshold[point]), n_true, self.n_positive, n_false, self.n_negative)

    def at_far(self, far: float) -> Rates | None:
        """Return the point with the largest TAR whose FAR is at most `far`.

        `None` where `far` is below 1 / n_negative: so few negative pairs cannot tell such a rate from 0. Where the most alike negative
        pairs lie above all positive ones nothing can be accepted; the threshold is then infinite.
        """
        if far < 1 / self.n_negative:
            return None
        n_within = int((self.far <= far).count_nonzero())
        return self.at(n_within - 1) if n_within else Rates(torch.inf, 0, self.n_positive, 0, self.n_negative)

    def at_tar(self, tar: float) -> Rates:
        """Return the point with the smallest FAR whose TAR is at least `tar`."""
        return self.at(int((self.tar < tar).count_nonzero()))

    def at_equal_error(self) -> Rates:
        """Return the point where FAR and 1 - TAR lie closest together; of several, the one with the smallest FAR."""
        missed = self.n_positive - self.n_true_accepts
        # Counts instead of rates: points that lie equally close then do so to the bit.
        return self.at(int((self.n_false_accepts.double() * self.n_positive - missed.double() * self.n_negative).abs().argmin()))


def roc_of(counts: PairCounts) -> Roc:
    """Return the curve."""
    n_true, n_false = (_from_above(n) for n in (counts.n_positive, counts.n_tied + counts.n_between))
    return Roc(counts.sim.flip(0), n_true, n_false, int(counts.n_positive.sum()), counts.n_negative)


def area(counts: PairCounts) -> float:
    """Return the area under the whole curve: the chance that a positive pair is more alike than a negative one, ties counting half.

    AUC = 1 / (P N) sum over positive pairs p of |{n : s_n < s_p}| + |{n : s_n = s_p}| / 2
    """
    at_least = _from_above(counts.n_tied + counts.n_between).flip(0)
    below = counts.n_negative - at_least
    won = (counts.n_positive.double() * (below.double() + counts.n_tied.double() / 2)).sum()
    return float(won / (float(counts.n_positive.sum()) * counts.n_negative))


def equal_error_rate(counts: PairCounts) -> float:
    """Return the error where FAR = 1 - TAR, on the line between the two points of the whole curve around it.

    Between two positive similarities the whole curve runs level, over the negative pairs there, and then rises, aslant where pairs tie.
    """
    n_tied = counts.n_tied.flip(0)
    n_true, n_false = _from_above(counts.n_positive), _from_above(counts.n_tied + counts.n_between)
    zero = n_true.new_zeros(1)
    level = torch.stack([n_false - n_tied, torch.cat([zero, n_true[:-1]])])
    corners = torch.stack([level, torch.stack([n_false, n_true])], dim=2).flatten(1).double()
    far = torch.cat([zero.double(), corners[0] / counts.n_negative, zero.double() + 1])
    miss = 1 - torch.cat([zero.double(), corners[1] / float(counts.n_positive.sum()), zero.double() + 1])
    excess = far - miss  # from -1 to 1, never descending
    after = int((excess < 0).count_nonzero())
    before = after - 1
    share = float(excess[before] / (excess[before] - excess[after]))
    return float(far[before]) + share * float(far[after] - far[before])


def _from_above(n: Int[Tensor, " t"]) -> Int[Tensor, " t"]:
    """Return how many lie at or above each similarity, from the largest similarity down."""
    return n.flip(0).cumsum(0)
