"""`kinfold hierarchy fit`: embeddings → groups of classes, as a taxonomy file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinfold.commands.agreement import print_agreement
from kinfold.commands.embeddings_of import embeddings_of
from kinfold.commands.hierarchy_show import hierarchy_record, print_hierarchy
from kinfold.commands.output import print_json, say
from kinfold.data.sources import TEXT_SUFFIXES
from kinfold.data.taxonomy_file import write_hierarchy
from kinfold.errors import ConfigError
from kinfold.evaluation.agreement import agreements
from kinfold.fitted_hierarchy import check_fit, fit_hierarchy
from kinfold.learned_groups import groups_of_classes


@dataclass(frozen=True)
class FitOptions:
    """What can be set on the command line; texts as they were typed."""

    sizes: str
    table: str | None = None
    split: str = "train"
    method: str = "kmeans"
    space: Any = "unit"
    seed: int = 0
    out: Path | None = None
    picture: Path | None = None
    workers: int = 0
    device: str | None = None

    @property
    def size_list(self) -> tuple[int, ...]:
        """The number of groups of each level."""
        try:
            return tuple(int(size) for size in self.sizes.split(","))
        except ValueError:
            raise ConfigError(f"--sizes {self.sizes!r}: give whole numbers, the finest level first, such as 20,5.") from None

    def check(self) -> None:
        """Find mistakes before anything is embedded."""
        check_fit(self.size_list, self.method, self.space)
        if self.out is not None and self.out.suffix.lower() not in TEXT_SUFFIXES:
            raise ConfigError(f"--out {self.out}: the name must end in {' or '.join(TEXT_SUFFIXES)}.")


def fit_hierarchy_command(target: str, options: FitOptions, *, as_json: bool) -> None:
    """Group the classes of a split by the means of their embeddings; print the tree and how well it agrees with given levels."""
    options.check()
    found = embeddings_of(target, table=options.table, split=options.split, workers=options.workers, device=options.device)
    how: dict[str, Any] = {"method": options.method, "space": options.space, "seed": options.seed}
    tree = fit_hierarchy(found.embedding, found.label, options.size_list, **how)
    given = groups_of_classes(tree.classes, found.label, found.levels)
    rows = agreements(tree.columns(), given) if given else []
    if options.out is not None:
        write_hierarchy(tree, options.out)
        say(f"wrote {options.out}: data.taxonomy={options.out} puts these levels onto a table")
    if options.picture is not None:
        from kinfold.reports.dendrogram import draw_dendrogram

        colors = _colors(tree.classes, given)
        draw_dendrogram(tree, options.picture, title=f"{target}, {options.split}", **colors)
        say(f"wrote {options.picture}")
    if as_json:
        record = {"target": target, "split": options.split, **how, **hierarchy_record(tree)}
        print_json({**record, "agreement": [row.to_dict() for row in rows]})
        return
    print_hierarchy(tree)
    if rows:
        print_agreement(rows, title="\nagreement with given levels")


def _colors(classes: tuple[Any, ...], given: dict[str, tuple[Any, ...]]) -> dict[str, Any]:
    """Colour the classes by the first given level, if there is one."""
    for name, groups in given.items():
        return {"color_by": dict(zip(classes, groups, strict=True)), "color_name": name}
    return {}
