"""What an epoch's batches hold, known from the sampler alone: classes, images and positive pairs."""

from dataclasses import dataclass

import numpy as np

from kinfold.checks.class_groups import class_group_findings
from kinfold.checks.finding import Finding
from kinfold.checks.wording import counted, listed
from kinfold.data.samplers import BatchSampler
from kinfold.data.table import Table
from kinfold.objectives.base import Objective
from kinfold.objectives.pairwise import Pairwise
from kinfold.recipe import BatchSettings, Recipe

FEW_POSITIVES = 0.5
"""Share of the images of a batch that have a positive pair in it, below which a pair loss has little to pull together."""

MANY_UNSEEN = 0.1
"""Share of the images that an epoch leaves out from which it is told; the last images never fill a batch."""


@dataclass(frozen=True)
class Drawn:
    """What the first epoch shows.

    Attributes:
        n_batches: batches of the epoch.
        of_class: how many images of each class are shown, an image shown twice counting twice.
        n_rows_unseen: images that are not shown.
        paired: share of the shown images with another image of their class in the batch, in [0, 1].
    """

    n_batches: int
    of_class: np.ndarray
    n_rows_unseen: int
    paired: float


def drawn(sampler: BatchSampler, label: np.ndarray) -> Drawn:
    """Walk through the first epoch of a sampler; no image is read.

    Args:
        sampler: of the training batches.
        label: class number of every row, from 0.

    Example:
        >>> from kinfold.data.samplers import SequentialBatchSampler
        >>> found = drawn(SequentialBatchSampler(4, 2), np.array([0, 0, 0, 1]))
        >>> found.of_class.tolist(), found.paired
        ([3, 1], 0.5)
    """
    n_classes = int(label.max()) + 1
    of_class = np.zeros(n_classes, dtype=np.int64)
    seen = np.zeros(len(label), dtype=bool)
    n_paired = n_batches = 0
    for rows in sampler.epoch(0):
        counts = np.bincount(label[rows], minlength=n_classes)
        of_class += counts
        n_paired += int(counts[counts > 1].sum())
        seen[rows] = True
        n_batches += 1
    return Drawn(n_batches, of_class, int((~seen).sum()), n_paired / max(1, int(of_class.sum())))


def sampling_findings(recipe: Recipe, train: Table, objective: Objective, sampler: BatchSampler) -> list[Finding]:
    """Look at the batches that a recipe draws of the training images.

    Returns:
        `uneven_batch`, `few_classes` (warning): a batch does not go round. `long_window` (warning): an update gathers more batches
        than an epoch has. `classes_never_drawn` (warning with proxies, else note), `images_never_drawn` (note). `no_positives`
        (error), `few_positives` (warning): a pair loss without pairs to pull together. Of hierarchical batches also what
        `class_group_findings` returns.
    """
    found = drawn(sampler, train.class_index)
    return [
        *_room(recipe.batches, train),
        *class_group_findings(recipe.batches, train),
        *_window(recipe, found),
        *_unseen(found, train, objective),
        *(_positives(recipe.batches, found) if isinstance(objective, Pairwise) else []),
    ]


def _room(batches: BatchSettings, train: Table) -> list[Finding]:
    if batches.sampler == "random":
        return []
    found, size, m = [], batches.batch_size, batches.images_per_class
    if size % m:
        message = f"`batches.batch_size` = {size} is no multiple of `batches.images_per_class` = {m}: one class of each batch gives fewer"
        remedy = f"set batches.batch_size = {max(m, size - size % m)} or {size + m - size % m}"
        found.append(Finding("uneven_batch", "warning", message, remedy))
    if size // m > train.n_classes:
        found.append(
            Finding(
                "few_classes",
                "warning",
                f"`batches.batch_size` = {size} has room for {size // m} classes of `batches.images_per_class` = {m} images, but there "
                f"are {train.n_classes}: every batch holds all classes, and more images of each",
                f"lower batches.batch_size to at most {train.n_classes * m}, or raise batches.images_per_class",
            )
        )
    return found


def _window(recipe: Recipe, found: Drawn) -> list[Finding]:
    n = recipe.train.gradient_accumulation_steps
    if n <= found.n_batches:
        return []
    message = f"`train.gradient_accumulation_steps` = {n}, but an epoch has {counted(found.n_batches, 'batch', 'batches')}: one update an epoch"
    return [Finding("long_window", "warning", message, "lower train.gradient_accumulation_steps, or batches.batch_size")]


def _unseen(found: Drawn, train: Table, objective: Objective) -> list[Finding]:
    findings = []
    unseen = [train.classes[number] for number in np.flatnonzero(found.of_class == 0)]
    n_batches = counted(found.n_batches, "batch", "batches")
    if unseen:
        per_class = objective.n_classes is not None
        what = "their proxies are pushed away by all others and pulled by nothing" if per_class else "they come in later epochs"
        findings.append(
            Finding(
                "classes_never_drawn",
                "warning" if per_class else "note",
                f"{len(unseen):,} of {counted(train.n_classes, 'class', 'classes')} are in none of the {n_batches} of the first epoch: "
                f"{listed(unseen)}; {what}",
                "lower batches.batch_size or batches.images_per_class, so that an epoch has room for every class",
            )
        )
    if found.n_rows_unseen >= MANY_UNSEEN * len(train):
        findings.append(
            Finding(
                "images_never_drawn",
                "note",
                f"{found.n_rows_unseen:,} of {counted(len(train), 'training image')} are in none of the {n_batches} of the first epoch",
                "nothing to do: other images are left out in other epochs; batches.sampler = 'random' shows nearly all in each",
            )
        )
    return findings


def _positives(batches: BatchSettings, found: Drawn) -> list[Finding]:
    if found.paired >= FEW_POSITIVES:
        return []
    is_random = batches.sampler == "random"
    how = "`batches.sampler` = 'random'" if is_random else f"`batches.images_per_class` = {batches.images_per_class}"
    remedy = (
        "set batches.sampler = 'm_per_class' and batches.images_per_class = 4, or train with proxies (objective.name = 'proxy')"
    )
    if not found.paired:
        message = f"no batch holds two images of a class ({how}): a pair loss has nothing to pull together"
        return [Finding("no_positives", "error", message, remedy)]
    message = f"{found.paired:.0%} of the images have a positive pair in their batch ({how}): the others are only pushed away"
    return [Finding("few_positives", "warning", message, remedy)]
