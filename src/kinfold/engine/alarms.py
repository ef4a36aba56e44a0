"""The rules: states of a run that need a person, each with its cause and what to do about it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

WARM_UP = 50
"""Updates that are not judged: untrained networks find everything alike."""

LASTS = 50
"""Updates that a state must have lasted, over at least `ROWS` rows of the log, without getting better."""

ROWS = 3

Row = Mapping[str, float]


@dataclass
class Vitals:
    """What the rules look at.

    Attributes:
        rows: measured rows of the log that reach back `LASTS` updates, the oldest first: `step`, `epoch`, `room` (directions that
            the batch's classes could span) and what was measured.
        n_batches: batches seen.
        n_inactive: those whose gradient at the embeddings was exactly zero.
        drifts: mean angle that the proxies turned by, in radians, of every epoch in which they were to train.
        n_proxies: one per class; 0 where there are none.
        never_hit: numbers of the classes without an image so far.
        n_epochs: whole epochs over which these were counted.
        step: updates done.
    """

    rows: list[dict[str, float]] = field(default_factory=list)
    n_batches: int = 0
    n_inactive: int = 0
    drifts: list[float] = field(default_factory=list)
    n_proxies: int = 0
    never_hit: list[int] = field(default_factory=list)
    n_epochs: int = 0
    step: int = 0

    def see_row(self, row: dict[str, float]) -> None:
        """Add a row and forget those that are not needed any more."""
        self.rows.append(row)
        while len(self.rows) > ROWS and row["step"] - self.rows[1]["step"] >= LASTS:
            self.rows.pop(0)


def collapse(vitals: Vitals) -> str | None:
    """All images look alike, or differ along one line only."""
    rows = vitals.rows
    if _lasts(rows, _is_one_point) and not (_rises(rows, "similarity_gap", 0.002) or _rises(rows, "negative_similarity", -0.005)):
        newest = rows[-1]
        found = f"images of different classes have a mean similarity of {newest['negative_similarity']:.3f}" + (
            f", those of one class {newest['positive_similarity']:.3f}" if "positive_similarity" in newest else ""
        )
    elif _lasts(rows, _is_one_line) and not _rises(rows, "effective_rank", 0.2):
        found = f"the effective rank is {rows[-1]['effective_rank']:.1f}: they differ along one direction only"
    else:
        return None
    return (
        f"the embeddings have collapsed: {found}, and that has been so for {_span(rows)} updates. The loss stands at its margin from "
        "here on. Begin again with a learning rate of a tenth, or with a warm-up (schedule.warmup_epochs); take semi_hard triplets "
        "instead of batch_hard ones; put more classes into a batch."
    )


def _is_one_point(row: Row) -> bool:
    return row.get("negative_similarity", 0.0) > 0.95 and row.get("similarity_gap", 0.0) < 0.02


def _is_one_line(row: Row) -> bool:
    """A few classes, or an embedding of a few numbers, may well be told apart on a line: there must be room for more."""
    return row.get("effective_rank", math.inf) < 2.0 and row["room"] >= 4


def negatives_closer(vitals: Vitals) -> str | None:
    """Images of different classes are more alike than those of one class; a collapse has a rule of its own."""

    def is_turned(row: Row) -> bool:
        return row["epoch"] >= 1 and row.get("similarity_gap", 0.0) < 0.0 and not _is_one_point(row)

    rows = vitals.rows
    if not _lasts(rows, is_turned) or _rises(rows, "similarity_gap", 0.002):
        return None
    return (
        f"images of different classes are more alike than images of one class, by {-rows[-1]['similarity_gap']:.3f}, and have been for "
        f"{_span(rows)} updates. Look whether the labels belong to the images, and whether the similarity is larger for what is more "
        "alike (a distance enters as its negative); then lower the learning rate."
    )


def dead_batches(vitals: Vitals) -> str | None:
    """Most batches teach nothing at all."""
    if vitals.n_batches < WARM_UP or vitals.n_inactive <= 0.5 * vitals.n_batches:
        return None
    return (
        f"{vitals.n_inactive:,} of {vitals.n_batches:,} batches had no active pair: their gradient was zero. "
        "Raise the margin, loosen the mining, or put more classes into a batch."
    )


def few_active_pairs(vitals: Vitals) -> str | None:
    """Almost no pair teaches anything, among positives and among negatives; batches that are quite dead have a rule of their own."""
    rows = vitals.rows
    if dead_batches(vitals) or not _lasts(rows, lambda row: _most_active(row) < 0.02):
        return None
    if _rises(rows, "active_positive", 0.002) or _rises(rows, "active_negative", 0.002):
        return None
    shares = " and ".join(f"{rows[-1][name]:.1%} of the {kind}" for name, kind in _SIDES.items() if name in rows[-1])
    return (
        f"only {shares} pairs of a batch still give a gradient, for {_span(rows)} updates. Either training is done and may stop here, "
        "or the batches are too easy: put more classes into a batch, raise the margin, or mine harder pairs."
    )


_SIDES = {"active_positive": "positive", "active_negative": "negative"}


def _most_active(row: Row) -> float:
    """Return the larger share: batch-hard triplets use one negative of many, and nearly all anchors."""
    return max((row[name] for name in _SIDES if name in row), default=1.0)


def proxies_never_hit(vitals: Vitals) -> str | None:
    """Proxies of classes that no batch has had an image of are only ever pushed away."""
    missing = vitals.never_hit
    if vitals.n_epochs < 2 or not missing:
        return None
    some = ", ".join(str(number) for number in missing[:5]) + (", …" if len(missing) > 5 else "")
    return (
        f"{len(missing):,} of {vitals.n_proxies:,} classes had no image in any batch of {vitals.n_epochs} epochs (number {some}): their "
        "proxies are only pushed away. The sampler leaves them out or they have no images: lower batches.images_per_class, take "
        "batches.sampler = 'random', or make the objective for the classes that there are."
    )


def proxies_still(vitals: Vitals) -> str | None:
    """Proxies that have not moved since the start; those that come to rest at a run's end are as they should be."""
    if vitals.step < WARM_UP or not vitals.drifts or max(vitals.drifts) >= 1e-4:
        return None
    return (
        f"the proxies do not move: they have turned by {max(vitals.drifts):.1e} rad an epoch at most. Look whether they are frozen "
        "(requires_grad), cut off from the loss (detach), or learn too slowly: they commonly take 100 times the model's rate "
        "(the table optimizer.proxies)."
    )


def proxies_spin(vitals: Vitals) -> str | None:
    """Proxies that turn so far in an epoch that images chase them; the way from a random start does not count."""
    last = vitals.drifts[-2:]
    if vitals.step < WARM_UP or len(vitals.drifts) < 3 or min(last) <= 1.0 or last[-1] < 0.9 * last[0]:
        return None
    return (
        f"the proxies turn by {last[-1]:.2f} rad an epoch and do not come to rest: the embeddings run after them. Lower their learning "
        "rate (the table optimizer.proxies), or train in longer epochs."
    )


def generator_collapse(vitals: Vitals) -> str | None:
    """The vectors of a generated class are one point: the metric loss alone lets a generator forget its noise."""
    rows = vitals.rows
    if not _lasts(rows, lambda row: row.get("generated_variance", math.inf) < 0.1) or _rises(rows, "generated_variance", 0.005):
        return None
    return (
        f"generated classes have collapsed to points: the variance within them is {rows[-1]['generated_variance']:.3f} of that within real "
        f"classes, and has been under a tenth for {_span(rows)} updates. Take objective.divergence = 'mmd' or 'sliced_wasserstein', raise "
        "objective.divergence_weight, or give the generator more pretraining (objective.pretraining_epochs)."
    )


Rule = Callable[[Vitals], str | None]

RULES: dict[str, Rule] = {
    "collapse": collapse,
    "negatives_closer": negatives_closer,
    "dead_batches": dead_batches,
    "few_active_pairs": few_active_pairs,
    "proxies_never_hit": proxies_never_hit,
    "proxies_still": proxies_still,
    "proxies_spin": proxies_spin,
    "generator_collapse": generator_collapse,
}


def _span(rows: Sequence[Row]) -> int:
    return int(rows[-1]["step"] - rows[0]["step"])


def _lasts(rows: Sequence[Row], is_bad: Callable[[Row], bool]) -> bool:
    """Return whether a state has lasted for `LASTS` updates and `ROWS` rows, none of them of the beginning."""
    is_long = len(rows) >= ROWS and _span(rows) >= LASTS
    return is_long and rows[0]["step"] >= WARM_UP and all(is_bad(row) for row in rows)


def _rises(rows: Sequence[Row], name: str, least: float) -> bool:
    """Return whether a number is larger in the newer half of the rows than in the older by `least`; below 0: smaller by that."""
    values = [row[name] for row in rows if name in row]
    half = len(values) // 2
    if half == 0:
        return False
    change = (math.fsum(values[-half:]) - math.fsum(values[:half])) / half
    return change > least if least > 0 else change < least
