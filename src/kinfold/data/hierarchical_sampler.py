"""Batches that mix near and far classes: several classes of each of several groups."""

from collections.abc import Iterator

import numpy as np

from kinfold.data.batch_sampler import BatchSampler
from kinfold.data.class_batches import ClassBatches, Labels
from kinfold.data.group_deck import GroupDeck
from kinfold.errors import ConfigError, DataError


class HierarchicalSampler(BatchSampler):
    """Batches of batch_size / (m · classes_per_group) groups, classes_per_group classes of each, m images of each class.

    A group is what unites classes that look alike: a family of birds, a writing system. Its other classes are near negatives, those
    of other groups far ones. Whatever the data:

    - batches are full and no image comes twice in one; an epoch is n_rows // batch_size batches, all processes together;
    - every batch has two classes of one group (a near negative) and a third class of another group (a far one), with at least 2
      images each (for m ≥ 2), wherever there are such classes;
    - classes come equally often: a group's share of the places is its share of the classes, so that the one class of a small group
      comes no more often than any class of a large one. Where every class gives m images, the numbers of batches that show two
      classes differ by a few in an epoch of any length, and hardly at all in the mean over epochs;
    - classes come more often only where the promise before asks for it: those of the few groups with two classes where nearly all
      groups have one, and those of the other groups where one group holds most classes.

    What does not go round is filled up: a group with fewer classes gives what it has, and further groups follow; a class with fewer
    than m images gives what it has, and further classes follow; a group comes a second time in a batch, with other classes, where it
    holds more than its place in a batch, or groups are too few. Classes with a single image (`n_singletons`) get their share of the
    places, whatever their group, and are not counted in the promises above.

    Args:
        label: class of every row, of any integer or string type.
        group: group of every row; all rows of a class have the same.
        m: images a class, ≥ 1.
        classes_per_group: classes a group, ≥ 2.
        batch_size: images a batch (of one process), ≥ 6 (≥ 3 for m = 1), at most the number of rows.
        seed: ≥ 0; with the epoch it decides all batches.
        rank: number of this process.
        world_size: number of processes; each gets every `world_size`-th batch, all the same number.

    Raises:
        ConfigError: a setting is out of its range.
        DataError: `label` or `group` is not one value a row, or a class lies in two groups.

    Example:
        >>> label = np.arange(32) // 4  # 8 classes of 4 images
        >>> group = label // 4  # 2 groups of 4 classes
        >>> sampler = HierarchicalSampler(label, group, m=2, classes_per_group=2, batch_size=8)
        >>> len(sampler), [np.bincount(group[rows]).tolist() for rows in sampler]
        (4, [[4, 4], [4, 4], [4, 4], [4, 4]])
    """

    def __init__(  # noqa: PLR0913
        self,
        label: Labels,
        group: Labels,
        *,
        m: int,
        classes_per_group: int,
        batch_size: int,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        if classes_per_group < 2:
            raise ConfigError(f"classes_per_group = {classes_per_group}: near negatives need 2 classes of a group or more")
        self._batches = ClassBatches(label, m=m, batch_size=batch_size, n_classes=3, n_fixed=3)
        n_rows = self._batches.n_rows
        super().__init__(n_rows, n_rows // batch_size, seed=seed, rank=rank, world_size=world_size)
        self.m, self.classes_per_group, self.batch_size = m, classes_per_group, batch_size
        self.n_singletons = self._batches.n_singletons
        self._group = _group_of_class(np.asarray(label), np.asarray(group), self._batches.first_rows())

    def _every_batch(self, epoch: int) -> Iterator[list[int]]:
        rng = self._rng(epoch)
        return self._batches.deal(GroupDeck(self._batches.paired, self._group, run=self.classes_per_group, rng=rng), rng)


def _group_of_class(label: np.ndarray, group: np.ndarray, first_row: np.ndarray) -> np.ndarray:
    """Return the group's number of each class, in the order of sorted labels."""
    if group.shape != label.shape:
        raise DataError(f"group has shape {group.shape}, label {label.shape}: give one group a row")
    _, number = np.unique(label, return_inverse=True)
    names, code = np.unique(group, return_inverse=True)
    of_class = code[first_row]
    torn = np.flatnonzero(code != of_class[number])
    if len(torn):
        row = torn[0]
        raise DataError(
            f"class {label[row]} lies in two groups, {names[of_class[number[row]]]} and {group[row]}: give each class one group"
        )
    return of_class
