"""The hierarchy that a run learned: read from its log, followed over its epochs, compared with given levels."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.build import build_table
from kinfold.config import DataSettings
from kinfold.core.hierarchy import Hierarchy, Name
from kinfold.core.numbered_groups import hierarchy_from_codes
from kinfold.data.table import Table
from kinfold.engine.run import Run
from kinfold.errors import DataError
from kinfold.evaluation.agreement import PERMUTATIONS, LevelAgreement, agreements
from kinfold.models.class_names import checked_class_names
from kinfold.models.weights import LABELS


@dataclass(frozen=True)
class Snapshot:
    """The groups that an objective had found at the end of an epoch.

    Attributes:
        epoch: counted from 0.
        step: updates made until then.
        codes: (levels, classes), the group number of each class, finest level first.
        sizes: how many groups each level has room for.
    """

    epoch: int
    step: int
    codes: np.ndarray
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class AssignmentMoves:
    """What an epoch changed on one level.

    Attributes:
        epoch: counted from 0.
        step: updates made until then.
        level: `level_1` is the finest.
        n_groups: how many groups the level has room for.
        n_empty: how many of them hold no class.
        n_moved: classes in another group than at the snapshot before; `None` for the first.
    """

    epoch: int
    step: int
    level: str
    n_groups: int
    n_empty: int
    n_moved: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as a plain dictionary."""
        return asdict(self)


def snapshots(run: Run | str | Path) -> list[Snapshot]:
    """Return the groups that a run logged, epoch by epoch; none where its objective groups no classes.

    Args:
        run: a run, or its folder.

    Raises:
        DataError: a snapshot that cannot be read.
    """
    run = _run(run)
    found = [row for row in run.rows() if (row.get("snapshot") or {}).get("parent")]
    return [_snapshot(row, run) for row in found]


def learned_hierarchy(run: Run | str | Path) -> Hierarchy:
    """Return the groups of the training classes as they were at the end of training, or are so far.

    Levels are `level_1` (the finest), `level_2`, …; groups are named by number and first classes (`hierarchy_from_codes`); groups
    without a class are left out. Classes are named as in the run's model or table; `class 17` where neither is known.

    Args:
        run: a run, or its folder.

    Raises:
        DataError: the run logged no groups, or groups of another number of classes than it trained on.
    """
    run = _run(run)
    found = snapshots(run)
    if not found:
        raise DataError(
            f"{run.folder} has learned no hierarchy: its log has no snapshot of groups. Objectives such as hpl write one at the end of "
            "each epoch, from the first clustering on."
        )
    classes = class_names(run, found[-1].codes.shape[1])
    return hierarchy_from_codes(classes, found[-1].codes.tolist())


def class_names(run: Run, n_classes: int) -> tuple[Name, ...]:
    """Return the names of a run's training classes in the order of their numbers.

    Raises:
        DataError: the run knows another number of classes.
    """
    labels = run.model / LABELS
    data = run.config().get("data")
    names = checked_class_names(json.loads(labels.read_text(encoding="utf-8"))["classes"]) if labels.is_file() else None
    if names is None and data is not None:
        names = build_table(DataSettings(**data)).of_split("train").classes
    if names is None:
        return tuple(f"class {number}" for number in range(n_classes))
    if len(names) != n_classes:
        raise DataError(
            f"{run.folder} groups {n_classes} classes, but there are {len(names)} training classes: the table has changed since."
        )
    return tuple(names)


def assignment_moves(run: Run | str | Path) -> list[AssignmentMoves]:
    """Return, for each snapshot and level, how many classes changed their group since the snapshot before.

    A group keeps its number from one snapshot to the next, unless the run clusters anew at each refresh (`update = "offline"`):
    then the groups of both are matched one to one, so that as many classes as possible stay.

    Args:
        run: a run, or its folder.

    Raises:
        DataError: a snapshot that cannot be read.
    """
    run = _run(run)
    is_anew = _objective(run).get("settings", {}).get("update") == "offline"
    moves = list[AssignmentMoves]()
    before: Snapshot | None = None
    for now in snapshots(run):
        for place, (code, size) in enumerate(zip(now.codes, now.sizes, strict=True)):
            n_moved = None if before is None else _n_moved(before.codes[place], code, is_anew=is_anew)
            n_empty = size - len(np.unique(code))
            moves.append(AssignmentMoves(now.epoch, now.step, f"level_{place + 1}", size, n_empty, n_moved))
        before = now
    return moves


def report_learned(
    run: Run | str | Path, table: Table, *, permutations: int = PERMUTATIONS, seed: int = 0
) -> list[LevelAgreement]:
    """Compare each level that a run learned with each level of the training classes in its table.

    Args:
        run: a run, or its folder.
        table: what it was trained on.
        permutations: see `agreement`.
        seed: see `agreement`.

    Returns:
        A row for each pair of levels; none where nothing was learned, or the table has no level.

    Raises:
        DataError: the table has other training classes.
    """
    run, train = _run(run), table.of_split("train")
    if not train.levels or not snapshots(run):
        return []
    learned = learned_hierarchy(run).restricted(train.classes)
    given = groups_of_classes(train.classes, train.label, train.levels)
    return agreements(learned.columns(), given, permutations=permutations, seed=seed)


def groups_of_classes(
    classes: Sequence[Name], label: Sequence[Name], levels: Mapping[str, Sequence[Name]]
) -> dict[str, tuple[Name, ...]]:
    """Return the group of each class on each level, from columns with a value for each image; levels may cross.

    Example:
        >>> groups_of_classes(["owl", "wren"], ["wren", "owl", "wren"], {"order": ["song", "night", "song"]})
        {'order': ('night', 'song')}
    """
    found = {}
    for name, groups in levels.items():
        group_of = dict(zip(label, groups, strict=True))
        found[name] = tuple(group_of[each] for each in classes)
    return found


def _run(run: Run | str | Path) -> Run:
    return run if isinstance(run, Run) else Run(run)


def _objective(run: Run) -> dict[str, Any]:
    return run.config().get("objective_object") or {}


def _snapshot(row: dict[str, Any], run: Run) -> Snapshot:
    parent = row["snapshot"]["parent"]
    try:
        codes = [np.asarray(parent[0], dtype=np.int64)]
        for above in parent[1:]:
            codes.append(np.asarray(above, dtype=np.int64)[codes[-1]])
    except (IndexError, TypeError, ValueError) as error:
        raise DataError(
            f"{run.log_file}, epoch {row.get('epoch')}: the snapshot's parents do not fit each other ({error})."
        ) from None
    # How large the coarsest level is, nobody above it says: its last groups may be empty.
    shape = _objective(run).get("tensors", {}).get(f"levels.{len(parent) - 1}.proxies")
    top = shape[0] if shape else int(codes[-1].max()) + 1
    return Snapshot(row["epoch"], row["step"], np.stack(codes), (*(len(above) for above in parent[1:]), top))


def _n_moved(before: np.ndarray, now: np.ndarray, *, is_anew: bool) -> int:
    if not is_anew:
        return int((before != now).sum())
    from scipy.optimize import linear_sum_assignment

    overlap = np.zeros((int(before.max()) + 1, int(now.max()) + 1), dtype=np.int64)
    np.add.at(overlap, (before, now), 1)
    return len(now) - int(overlap[linear_sum_assignment(overlap, maximize=True)].sum())
