"""`kinfold hierarchy show`: the groups of a run, a table or a taxonomy, as text, as JSON and as pictures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinfold.commands.embeddings_of import of_run
from kinfold.commands.groupings import Groupings, read_groupings
from kinfold.commands.output import print_json, print_table, say
from kinfold.core.hierarchy import Hierarchy, Name
from kinfold.data.datasets import images_of
from kinfold.errors import ConfigError
from kinfold.evaluation.exemplars import exemplars
from kinfold.learned_groups import AssignmentMoves, assignment_moves, groups_of_classes
from kinfold.reports.tree_text import tree_lines


@dataclass(frozen=True)
class ShowOptions:
    """What can be set on the command line."""

    levels: Sequence[str] = ()
    moves: bool = False
    exemplars: int | None = None
    out: Path | None = None
    picture: Path | None = None
    workers: int = 0
    device: str | None = None

    def check(self) -> None:
        """Refuse options that do nothing without each other."""
        if (self.exemplars is None) != (self.out is None):
            raise ConfigError("--exemplars N and --out FILE go together: how many images of each group, and where to draw them.")


def show_hierarchy_command(target: str, options: ShowOptions, *, as_json: bool) -> None:
    """Print each hierarchy as a tree, with the sizes of its levels; draw what was asked for."""
    options.check()
    groupings = read_groupings(target)
    if groupings.run is None and (options.moves or options.exemplars):
        raise ConfigError(f"{target} is no run: --moves and --exemplars show what a run learned.")
    shown = groupings.with_levels(options.levels)
    moves = assignment_moves(groupings.run) if groupings.run and options.moves else []
    _draw(target, shown, options)
    if as_json:
        trees = [hierarchy_record(tree) for tree in shown.hierarchies]
        record = {"target": target, "kind": shown.kind, "hierarchies": trees}
        print_json({**record, "moves": [move.to_dict() for move in moves]} if options.moves else record)
        return
    print(f"{target}: {shown.kind}")
    if len(shown.hierarchies) > 1:
        print(f"{len(shown.hierarchies)} trees: levels of different trees cross")
    for tree in shown.hierarchies:
        print()
        print_hierarchy(tree, images=shown.images)
    if options.moves:
        _print_moves(moves)


def print_hierarchy(tree: Hierarchy, *, images: Mapping[Name, int] | None = None) -> None:
    """Print a tree, and a row for each of its levels."""
    for line in tree_lines(tree, counts=images):
        print(line)
    print()
    rows = []
    for name, n_groups in zip(tree.names, tree.sizes, strict=True):
        sizes = _sizes(tree, name)
        ends = [f"{n:,}: {group}" for group, n in (sizes[0], sizes[-1])]
        rows.append([name, f"{n_groups:,}", f"{len(tree.classes) / n_groups:.1f}", *ends])
    print_table(["level", "groups", "classes each", "largest", "smallest"], rows)


def hierarchy_record(tree: Hierarchy) -> dict[str, Any]:
    """Return a hierarchy in plain values: its classes, the group of each on each level, and the sizes."""
    levels = [
        {"name": name, "n_groups": n_groups, "largest": list(_sizes(tree, name)[0]), "smallest": list(_sizes(tree, name)[-1])}
        for name, n_groups in zip(tree.names, tree.sizes, strict=True)
    ]
    columns = {name: list(groups) for name, groups in tree.columns().items()}
    return {"n_classes": len(tree.classes), "levels": levels, "classes": list(tree.classes), "groups": columns}


def _sizes(tree: Hierarchy, level: str) -> list[tuple[Name, int]]:
    """Return the groups of a level with their number of classes, the largest first."""
    return Counter(tree.groups_of(level)).most_common()


def _print_moves(moves: Sequence[AssignmentMoves]) -> None:
    rows = [
        [
            str(move.epoch + 1),
            f"{move.step:,}",
            move.level,
            "–" if move.n_moved is None else f"{move.n_moved:,}",
            f"{move.n_empty:,} of {move.n_groups:,}",
        ]
        for move in moves
    ]
    print()
    print_table(["epoch", "step", "level", "classes moved", "groups empty"], rows, title="moves since the epoch before")


def _draw(target: str, shown: Groupings, options: ShowOptions) -> None:
    if options.picture is not None:
        _draw_tree(target, shown, options.picture)
    if options.exemplars is not None and options.out is not None:
        _draw_exemplars(target, shown, options.exemplars, options)


def _draw_tree(target: str, shown: Groupings, file: Path) -> None:
    from kinfold.reports.dendrogram import draw_dendrogram

    tree, colors = shown.hierarchies[0], dict[str, Any]()
    if len(shown.hierarchies) > 1:
        chains = "; ".join(", ".join(tree.names) for tree in shown.hierarchies)
        raise ConfigError(
            f"--picture: the levels of {target} cross, one picture shows one tree. Name its levels (--level): {chains}."
        )
    if shown.run and shown.table and shown.table.levels:
        level = next(iter(shown.table.levels))  # given groups beside learned ones
        given = groups_of_classes(tree.classes, shown.table.label, {level: shown.table.levels[level]})
        colors = {"color_by": dict(zip(tree.classes, given[level], strict=True)), "color_name": level}
    draw_dendrogram(tree, file, counts=shown.images, title=f"{target}: {shown.kind}", **colors)
    say(f"wrote {file}")


def _draw_exemplars(target: str, shown: Groupings, n: int, options: ShowOptions) -> None:
    from kinfold.reports.exemplar_sheet import draw_exemplars

    assert shown.run is not None and options.out is not None
    if shown.table is None:
        raise ConfigError(
            f"{target}: its training images cannot be found, so none can be shown. Run it where `data.root` exists."
        )
    tree = shown.hierarchies[0]
    found = of_run(shown.run, shown.table, "train", workers=options.workers, device=options.device)
    rows = exemplars(found.embedding, found.label, tree, tree.names[0], n=n)
    pictures, place = images_of(shown.table), {item: row for row, item in enumerate(shown.table.item.tolist())}
    items = range(len(found)) if found.item is None else found.item.tolist()
    drawn = {group: [(pictures[place[items[row]]], str(found.label[row])) for row in chosen] for group, chosen in rows.items()}
    draw_exemplars(
        drawn, options.out, title=f"{target}, {tree.names[0]}: nearest to each group's mean, of distinct classes first"
    )
    say(f"wrote {options.out}")
