"""`kinfold hierarchy score`: how far off the nearest neighbours are in a hierarchy of classes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kinfold.commands.embeddings_of import embeddings_of
from kinfold.commands.output import print_json
from kinfold.core.hierarchy import Hierarchy
from kinfold.data.hierarchies import chains_of, hierarchy_of, with_hierarchy
from kinfold.data.read import read_table
from kinfold.data.taxonomy_file import read_hierarchy
from kinfold.embeddings import EmbeddingTable
from kinfold.errors import ConfigError
from kinfold.evaluation.hierarchy_metrics import score_hierarchy
from kinfold.evaluation.hierarchy_scores import HierarchyScores


@dataclass(frozen=True)
class ScoreOptions:
    """What can be set on the command line; texts as they were typed."""

    taxonomy: Path | None = None
    table: str | None = None
    split: str = "test"
    ks: str = "1,5,10"
    workers: int = 0
    device: str | None = None

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """The cut-offs as numbers."""
        try:
            return tuple(int(k) for k in self.ks.split(","))
        except ValueError:
            raise ConfigError(f"--ks {self.ks!r}: give whole numbers, such as 1,5,10.") from None


def score_hierarchy_command(target: str, options: ScoreOptions, *, as_json: bool) -> None:
    """Print recall by level, heights and the severity of mistakes, for each hierarchy that the levels form."""
    ks, taxonomy = options.cutoffs, None if options.taxonomy is None else read_hierarchy(options.taxonomy)
    rows = embeddings_of(target, table=options.table, split=options.split, workers=options.workers, device=options.device)
    scores = {" → ".join(("label", *tree.names)): _score(rows, tree, ks) for tree in _trees(rows, taxonomy)}
    if as_json:
        print_json({"split": options.split, "hierarchies": {name: found.to_dict() for name, found in scores.items()}})
        return
    for place, (name, found) in enumerate(scores.items()):
        print(("\n" if place else "") + f"{target}, {options.split}: {name}")
        print(found)


def _trees(rows: EmbeddingTable, taxonomy: Hierarchy | None) -> Iterator[Hierarchy]:
    """Yield a taxonomy's hierarchy, else one for each chain of the rows' levels; classes are named as the rows name them."""
    table = read_table({"path": [str(row) for row in range(len(rows))], "label": list(rows.label)})
    if taxonomy is not None:
        yield hierarchy_of(with_hierarchy(table, taxonomy), taxonomy.names)
        return
    table = replace(table, levels=dict(rows.levels))
    if not table.levels:
        raise ConfigError("the images have no level above their classes: name a taxonomy with --taxonomy FILE.")
    yield from (hierarchy_of(table, chain) for chain in chains_of(table))


def _score(rows: EmbeddingTable, tree: Hierarchy, ks: tuple[int, ...]) -> HierarchyScores:
    if not rows.sides:
        return score_hierarchy(rows.embedding, rows.label, tree, item=rows.item, ks=ks)
    query, gallery = rows.subset(rows.sides["is_query"]), rows.subset(rows.sides["is_gallery"])
    items: dict[str, Any] = {} if rows.item is None else {"item": query.item, "gallery_item": gallery.item}
    return score_hierarchy(
        query.embedding, query.label, tree, gallery=gallery.embedding, gallery_label=gallery.label, **items, ks=ks
    )
