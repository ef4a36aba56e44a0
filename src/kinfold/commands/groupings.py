"""What the hierarchy commands look at: the groups that a run learned, the levels of a table, or a taxonomy."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kinfold.build import GLYPHS, build_table
from kinfold.commands.targets import own_table
from kinfold.config import DataSettings
from kinfold.core.hierarchy import Hierarchy, Name, hierarchy_from_groups
from kinfold.data.hierarchies import chains_of, hierarchy_of
from kinfold.data.read import LEVEL_PREFIX, read_table
from kinfold.data.sources import from_file
from kinfold.data.table import Table
from kinfold.data.taxonomy_file import read_hierarchy
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError, KinfoldError, did_you_mean
from kinfold.learned_groups import learned_hierarchy


@dataclass(frozen=True)
class Groupings:
    """The groupings that a target holds.

    Attributes:
        kind: `learned hierarchy`, `levels of a table` or `taxonomy`.
        hierarchies: of the same classes, one for each chain of levels; levels of different chains cross.
        images: number of images of each class, where it is known.
        run: the run that learned them.
        table: of their images, where it is known; for a run its training split.
    """

    kind: str
    hierarchies: tuple[Hierarchy, ...]
    images: Mapping[Name, int] | None = None
    run: Run | None = None
    table: Table | None = None

    @property
    def classes(self) -> tuple[Name, ...]:
        """The classes that are grouped."""
        return self.hierarchies[0].classes

    def columns(self, classes: Sequence[Name]) -> dict[str, tuple[Name, ...]]:
        """Return the group of each of these classes, by level."""
        return {name: groups for tree in self.hierarchies for name, groups in tree.restricted(classes).columns().items()}

    def with_levels(self, names: Sequence[str]) -> "Groupings":
        """Return what is left of the hierarchies with these levels alone; all, if none is named.

        Raises:
            ConfigError: there is no level of that name.
        """
        if not names:
            return self
        known = list(dict.fromkeys(name for tree in self.hierarchies for name in tree.names))
        for name in names:
            if name not in known:
                raise ConfigError(f"--level {name!r}: {did_you_mean(name, known)}")
        kept = dict[tuple[str, ...], Hierarchy]()
        for tree in self.hierarchies:
            columns = {name: groups for name, groups in tree.columns().items() if name in names}
            if columns:
                kept.setdefault(tuple(columns), hierarchy_from_groups(tree.classes, columns))
        # A level that two chains share stands in the longer rest of them.
        longest = [tree for own, tree in kept.items() if not any(set(own) < set(other) for other in kept)]
        return replace(self, hierarchies=tuple(longest))


def read_groupings(target: str) -> Groupings:
    """Read a run folder, a table (file, folder, or the demo's characters), or a taxonomy file.

    Raises:
        DataError: there is no such thing, the run learned no hierarchy, or the file is broken.
        ConfigError: a table without levels.
    """
    if target == GLYPHS:
        return _of_table(build_table(DataSettings(root=target)))
    path = Path(target)
    if not path.exists():
        raise DataError(f"{target} does not exist: name a run folder, a table or its folder, or a taxonomy file.")
    run = Run(path)
    if run.exists:
        learned = learned_hierarchy(run)
        table = _training_table(run, learned)
        return Groupings("learned hierarchy", (learned,), _images(table), run, table)
    if path.is_dir() or _is_table(path):
        return _of_table(read_table(path))
    return Groupings("taxonomy", (read_hierarchy(path),))


def _of_table(table: Table) -> Groupings:
    chains = chains_of(table) or (None,)  # None: the error says what a table without levels can do
    return Groupings("levels of a table", tuple(hierarchy_of(table, chain) for chain in chains), _images(table), table=table)


def _is_table(file: Path) -> bool:
    """Tell a table of images from a taxonomy: both may have the columns `path` and `label`."""
    header = from_file(file).cells
    marked = any(name.startswith(LEVEL_PREFIX) or name in ("category", "split") for name in header)
    return marked and {"path", "label"} <= set(header)


def _training_table(run: Run, learned: Hierarchy) -> Table | None:
    """Return the images that a run was trained on, if they can be found: they add counts and given levels, no more."""
    try:
        table = own_table(run.config()).of_split("train")
    except KinfoldError:
        return None
    return table if set(table.classes) == set(learned.classes) else None


def _images(table: Table | None) -> dict[Name, int] | None:
    return None if table is None else dict(Counter(table.label))
