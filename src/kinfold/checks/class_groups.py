"""Whether the groups of hierarchical batches have near and far classes, and whether a batch has room for them."""

import numpy as np

from kinfold.checks.finding import Finding
from kinfold.checks.wording import counted
from kinfold.data.table import Table
from kinfold.recipe import BatchSettings

REMEDY = "name another level (batches.level), or set batches.sampler = 'm_per_class'"


def class_group_findings(batches: BatchSettings, train: Table) -> list[Finding]:
    """Look at the level of `batches.sampler` = 'hierarchical', which the table has; nothing is found for other samplers.

    Returns:
        `uneven_batch`, `few_groups` (warning): a batch does not go round, or has room for one group. `no_far_classes`,
        `no_near_classes` (warning): all classes are in one group, or none shares a group with another. `few_far_classes`,
        `few_near_classes` (warning): few do, so that they come more often than others.
    """
    if batches.sampler != "hierarchical" or batches.level is None:
        return []
    group = train.level_codes(batches.level)[np.unique(train.class_index, return_index=True)[1]]
    return [*_room(batches), *_near_and_far(batches, np.bincount(group))]


def _room(batches: BatchSettings) -> list[Finding]:
    size, m, per_group = batches.batch_size, batches.images_per_class, batches.classes_per_group
    run = f"`batches.classes_per_group` · `batches.images_per_class` = {per_group * m}"
    if size < 2 * per_group * m:
        message = (
            f"`batches.batch_size` = {size} has no room for two groups of {run} images: the last group of each batch gives fewer"
        )
        remedy = f"set batches.batch_size = {2 * per_group * m} or more, or lower batches.images_per_class or batches.classes_per_group"
        return [Finding("few_groups", "warning", message, remedy)]
    if size % (per_group * m) and not size % m:
        message = f"`batches.batch_size` = {size} is no multiple of {run}: one group of each batch gives fewer classes"
        low = size - size % (per_group * m)
        return [Finding("uneven_batch", "warning", message, f"set batches.batch_size = {low} or {low + per_group * m}")]
    return []


def _near_and_far(batches: BatchSettings, size: np.ndarray) -> list[Finding]:
    """Judge the numbers of classes of the groups."""
    level, n = f"level `{batches.level}`", int(size.sum())
    places = min(n, batches.batch_size // batches.images_per_class)
    near, far = int(size[size > 1].sum()), n - int(size.max())
    if not far:
        return [Finding("no_far_classes", "warning", f"all {n:,} training classes are in one group of {level}", REMEDY)]
    if not near:
        return [
            Finding("no_near_classes", "warning", f"each of the {n:,} training classes is alone in its group of {level}", REMEDY)
        ]
    found = []
    if near * places < 2 * n < n * places:
        times = 2 * (n - near) / (near * (places - 2))
        message = (
            f"{near:,} of {counted(n, 'training class', 'training classes')} share a group of {level} with another: two of them are in "
            f"each batch, so that they come about {times:.1f} times as often as the others"
        )
        found.append(Finding("few_near_classes", "warning", message, REMEDY))
    if far * places < n:
        times = (n - far) / (far * (places - 1))
        message = (
            f"{far:,} of {counted(n, 'training class', 'training classes')} are outside the largest group of {level}: one of them at "
            f"least is in each batch, so that they come about {times:.1f} times as often as the others"
        )
        found.append(Finding("few_far_classes", "warning", message, REMEDY))
    return found
