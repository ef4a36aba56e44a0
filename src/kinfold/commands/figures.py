"""`kinfold figures`: maps of embeddings and pictures of neighbours, of one run or of several on the same images."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.commands.figure_data import N_OUTSIDE, Compared, numbers_of, read_compared
from kinfold.commands.figure_neighbours import chosen_queries, draw_chosen, failed, search
from kinfold.commands.output import percent, print_json, print_table, say
from kinfold.data.table import SPLITS
from kinfold.errors import ConfigError, did_you_mean
from kinfold.reports.embedding_map import Panel, draw_maps
from kinfold.reports.projection import perplexity_for, project, turned_to

KINDS = ("map", "neighbours", "all")
PERPLEXITY = 30.0


@dataclass(frozen=True)
class FigureOptions:
    """What can be set on the command line; texts as they were typed."""

    level: str | None = None
    split: str = "test"
    kind: str = "all"
    out: Path = Path("figures")
    max_images: int = 3000
    queries: Sequence[str] = ()
    n_queries: int = 8
    seed: int = 0
    table: str | None = None
    workers: int = 0
    device: str | None = None

    def check(self) -> None:
        """Find mistakes before anything is embedded."""
        for option, value, known in (("--split", self.split, SPLITS), ("--kind", self.kind, KINDS)):
            if value not in known:
                raise ConfigError(f"{option} {value!r}: {did_you_mean(value, known)}")

    @property
    def query_names(self) -> list[str]:
        """The queries named, one text each."""
        return [name.strip() for text in self.queries for name in text.split(",") if name.strip()]


def figures_command(targets: Sequence[str], options: FigureOptions, *, as_json: bool) -> None:
    """Draw what was asked for, print the numbers that belong to it and the files written."""
    options.check()
    data = read_compared(
        targets,
        split=options.split,
        level=options.level,
        table=options.table,
        workers=options.workers,
        device=options.device,
    )
    say(f"scoring {len(data.rows):,} images of {len(set(data.rows.label)):,} classes ({options.split})")
    numbers, files, changes = numbers_of(data), list[Path](), None
    if options.kind != "neighbours":
        files.append(_draw_map(data, numbers, options))
    if options.kind != "map" and (data.table is not None or options.kind == "neighbours"):
        drawn, changes, rules = _draw_neighbours(data, options)
        files += drawn
        for rule in rules:
            say(rule)
    elif options.kind == "all":
        say("no pictures of neighbours: say which table the images are in with --table")
    if as_json:
        print_json(
            {
                "split": options.split,
                "level": data.level,
                "k": N_OUTSIDE,
                "models": numbers,
                "neighbours": changes,
                "files": list(map(str, files)),
            }
        )
    else:
        _show(data, numbers, changes, files)


def _draw_map(data: Compared, numbers: Sequence[dict[str, Any]], options: FigureOptions) -> Path:
    n, n_drawn = len(data.rows), min(len(data.rows), options.max_images)
    rows = np.sort(np.random.default_rng(options.seed).choice(n, n_drawn, replace=False))
    panels = list[Panel]()
    for name, embeddings, line in zip(data.names, data.embeddings, numbers, strict=True):
        say(f"laying out {n_drawn:,} of {n:,} embeddings of {name}")
        position = project(embeddings.embedding[rows], perplexity=PERPLEXITY, seed=options.seed)
        position = turned_to(position, panels[0].position) if panels else position
        panels.append(Panel(name, position, _detail(line, data.level)))
    caption = (
        f"t-SNE (perplexity {perplexity_for(n_drawn, PERPLEXITY):g}) of {n_drawn:,} of {n:,} embeddings, {len(set(data.rows.label)):,} "
        f"classes, split {options.split}; cosine; seed {options.seed}."
    )
    if len(panels) > 1:
        caption += " Maps are turned to lie alike."
    file = options.out / f"map_{options.split}.png"
    category = [data.category[row] for row in rows.tolist()]
    name = data.level or "class"
    draw_maps(panels, category, file, category_name=name, hulls=data.level is not None, caption=caption)
    return file


def _detail(line: dict[str, Any], level: str | None) -> str:
    if level is None:
        return f"Recall@1 {percent(line['recall_at_1']['label'])} %"
    share, chance = percent(line["outside_share"]), percent(line["outside_chance"])
    return f"{N_OUTSIDE} nearest outside the own class, in the same {level}: {share} % (chance {chance} %)"


def _draw_neighbours(data: Compared, options: FigureOptions) -> tuple[list[Path], dict[str, int] | None, list[str]]:
    """Draw the pictures; return their files, how often the models differ, and the rules that chose the queries."""
    searched = search(data)
    chosen = chosen_queries(data, searched, options.query_names, options.n_queries)
    pictures = {"neighbours": ("Queries and what is found for them", chosen), **failed(data, searched, options.n_queries)}
    files, rules = list[Path](), list[str]()
    for kind, (title, chosen) in pictures.items():
        file = options.out / f"{kind}_{options.split}.png"
        rules.append(f"{kind}: {chosen.rule} ({chosen.n_candidates:,} of {len(searched.query):,})")
        if len(chosen.place):
            draw_chosen(data, searched, chosen, file, title=f"{title} ({options.split})")
            files.append(file)
    return files, searched.changes() if len(data.names) > 1 else None, rules


def _show(data: Compared, numbers: Sequence[dict[str, Any]], changes: dict[str, int] | None, files: Sequence[Path]) -> None:
    columns = ["%", "Recall@1"]
    if data.level is not None:
        columns += [f"Recall@1 {data.level}", f"{N_OUTSIDE} nearest outside the class in the same {data.level}", "chance"]
    rows = []
    for line in numbers:
        row = [line["name"], *(percent(value) for value in line["recall_at_1"].values())]
        rows.append(row + ([percent(line["outside_share"]), percent(line["outside_chance"])] if data.level is not None else []))
    print_table(columns, rows)
    if changes is not None:
        base, last = data.names[0], data.names[-1]
        print(
            f"{last} against {base}, {changes['queries']:,} queries: the nearest differ for {changes['differ']:,}; the first of them "
            f"is of a better kind for {changes['better']:,}, of a worse kind for {changes['worse']:,}"
        )
    for file in files:
        print(f"wrote {file}")
