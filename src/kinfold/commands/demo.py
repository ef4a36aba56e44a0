"""`kinfold demo`: train on two writing systems, search in three never trained on, and draw what is found."""

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from kinfold.commands.output import percent, print_json, print_table, say
from kinfold.console import ConsoleWatch
from kinfold.data.glyphs import write_glyphs
from kinfold.data.table import Table
from kinfold.embeddings import EmbeddingTable
from kinfold.engine.settings import GroupSettings, LoopSettings, OptimizerSettings, ScheduleSettings
from kinfold.evaluation.exclusion import SameItem
from kinfold.evaluation.neighbours import nearest
from kinfold.evaluation.scores import Scores
from kinfold.evaluation.summary import plain
from kinfold.images.decode import open_image
from kinfold.losses import proxy_anchor
from kinfold.measure import embed_table, score_table, with_columns
from kinfold.models.embedder import Embedder
from kinfold.objectives.proxy import Proxies
from kinfold.recipe import BatchSettings, Recipe
from kinfold.records import Embedded
from kinfold.reports.figures import Shown, draw_neighbours
from kinfold.train import fit

DIM, SIZE = 128, 48
METRICS = ("recall_at_1", "map_at_r")
N_ROWS, N_NEIGHBOURS = 8, 8


def recipe(epochs: int) -> Recipe:
    """Return the demo's recipe, chosen on training characters that were held out."""
    return Recipe(
        batches=BatchSettings(batch_size=64, images_per_class=4, crop_scale=(0.6, 1.0), flip=False),
        optimizer=OptimizerSettings(learning_rate=3e-3, groups={"proxies": GroupSettings(learning_rate=3e-2)}),
        schedule=ScheduleSettings(kind="one_cycle"),
        train=LoopSettings(epochs=epochs),
    )


def demo_command(out: Path, *, epochs: int, as_json: bool) -> None:
    """Write glyphs, train, compare with the untrained network and with raw pixels, draw neighbours."""
    begin = time.perf_counter()
    say("drawing characters from the fonts that matplotlib ships")
    table = write_glyphs(out / "glyphs", size=SIZE)
    train, test = table.of_split("train"), table.of_split("test")
    scripts = ", ".join(str(name) for name in test.level_names("script"))
    say(
        f"train: {len(train):,} images of {train.n_classes} characters; test: {len(test):,} images of {test.n_classes} in {scripts}"
    )
    embedder = Embedder("convnet", DIM, size=SIZE)
    scores = {"raw pixels": _scores(with_columns(test, _pixels(test)))}
    scores["untrained network"] = _scores(with_columns(test, embed_table(embedder, test)))
    objective = Proxies(proxy_anchor, train.n_classes, DIM)
    with ConsoleWatch(epochs) as watch:
        trained = fit(table, embedder, objective, run=out / f"run-{epochs}-epochs", recipe=recipe(epochs), watch=watch)
    embeddings = with_columns(test, embed_table(trained.embedder, test))
    scores["trained"] = _scores(embeddings)
    picture = out / "neighbours.png"
    draw_neighbours(_rows(test, embeddings, scores["trained"]), picture, title="Writing systems never trained on")
    trained.run.write_metrics("test", {"label": scores["trained"].metrics})
    _report(scores, picture, time.perf_counter() - begin, as_json=as_json)


def _report(scores: dict[str, Scores], picture: Path, seconds: float, *, as_json: bool) -> None:
    if as_json:
        print_json({**plain(scores), "picture": str(picture), "seconds": seconds})
        return
    rows = [[name, *(percent(found.metrics[metric]) for metric in METRICS)] for name, found in scores.items()]
    print_table(["characters never trained on, %", "Recall@1", "MAP@R"], rows)
    print(f"{picture} shows queries with their nearest neighbours; {seconds:.0f} s in all")


def _scores(embeddings: EmbeddingTable) -> Scores:
    return score_table(replace(embeddings, levels={}), metrics=METRICS)["label"]  # coarse levels take many times as long


def _pixels(table: Table) -> Embedded:
    """Return the grey values of the pictures themselves as embeddings."""
    pictures = [np.asarray(open_image(table.image_path(row)).convert("L"), dtype=np.float32).ravel() for row in range(len(table))]
    pixels = torch.from_numpy(np.stack(pictures)) / 255
    ink = 1 - pixels  # paper is 0: cosine then compares what is drawn
    item = torch.as_tensor(table.item)
    return Embedded(ink, ink, torch.as_tensor(table.class_index), item, torch.zeros_like(item))


def _rows(table: Table, embeddings: EmbeddingTable, scores: Scores) -> list[list[Shown]]:
    """Return some queries with their neighbours, half of them with a wrong first neighbour where there are such."""
    right = scores.per_query["recall_at_1"] > 0.5
    generator = torch.Generator().manual_seed(0)
    wrong_rows = _some(scores.query[~right], N_ROWS // 2, generator)
    rows = [*_some(scores.query[right], N_ROWS - len(wrong_rows), generator), *wrong_rows]
    x = torch.from_numpy(embeddings.embedding)
    item = torch.as_tensor(table.item)
    found = nearest(x[rows], x, N_NEIGHBOURS, exclude=SameItem(item[rows], item))
    shown = []
    for place, row in enumerate(rows):
        neighbours, sims = found.of(place)
        line = [Shown(table.image_path(row), str(table.level_names("script")[table.level_codes("script")[row]]))]
        for neighbour, sim in zip(neighbours.tolist(), sims.tolist(), strict=True):
            line.append(Shown(table.image_path(neighbour), f"{sim:.2f}", table.label[neighbour] == table.label[row]))
        shown.append(line)
    return shown


def _some(rows: torch.Tensor, n: int, generator: torch.Generator) -> list[int]:
    return sorted(rows[torch.randperm(len(rows), generator=generator)[:n]].tolist())
