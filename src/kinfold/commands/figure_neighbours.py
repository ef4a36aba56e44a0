"""Pictures of queries with their neighbours by one model or more, the same queries for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from kinfold.commands.figure_data import Compared
from kinfold.data.datasets import ImageFiles
from kinfold.data.levels import dense_codes
from kinfold.data.table import Table
from kinfold.embeddings import EmbeddingTable
from kinfold.errors import ConfigError, DataError
from kinfold.evaluation.exclusion import SameItem
from kinfold.evaluation.neighbours import nearest
from kinfold.reports.chosen_queries import KIN, SAME, Chosen, compared, failures, kinds_of, turned
from kinfold.reports.figures import Shown, draw_neighbours

N_NEIGHBOURS = 8
PIXELS = 160  # of a picture's shorter side, at most
LETTERS = 17  # of a caption


@dataclass(frozen=True, eq=False)
class Searched:
    """The neighbours of all queries by every model.

    Attributes:
        query: row of each query, sorted by class and path.
        index: (n_queries, k) rows of the neighbours for each model, -1 after the end of a list.
        sim: their cosines.
        kinds: what they are; see `kinds_of`.
    """

    query: np.ndarray
    index: list[np.ndarray]
    sim: list[np.ndarray]
    kinds: list[np.ndarray]

    def changes(self) -> dict[str, int]:
        """Return for how many queries the last model differs from the first, and its first neighbour is of a better or worse kind."""
        first, last = self.kinds[0][:, 0], self.kinds[-1][:, 0]
        return {
            "queries": len(self.query),
            "differ": int((self.index[0] != self.index[-1]).any(axis=1).sum()),
            "better": int((last > first).sum()),
            "worse": int((last < first).sum()),
        }


def search(data: Compared) -> Searched:
    """Find the neighbours of every query by every model."""
    rows = data.rows
    query = np.flatnonzero(rows.sides["is_query"]) if rows.sides else np.arange(len(rows))
    query = np.array(sorted(query.tolist(), key=lambda row: (str(rows.label[row]), rows.path[row] if rows.path else "", row)))
    gallery = np.flatnonzero(rows.sides["is_gallery"]) if rows.sides else np.arange(len(rows))
    found = [_neighbours(embeddings, query, gallery) for embeddings in data.embeddings]
    label, group = dense_codes(rows.label), dense_codes(data.category)
    kinds = [kinds_of(index, label, group, query) for index, _ in found]
    return Searched(query, [index for index, _ in found], [sim for _, sim in found], kinds)


def chosen_queries(data: Compared, searched: Searched, wanted: Sequence[str], n: int) -> Chosen:
    """Return the queries named, or those that the rule takes."""
    if not wanted:
        return compared(searched.index, n, names=data.names)
    place = {int(row): number for number, row in enumerate(searched.query)}
    return Chosen(np.array([place[_row_of(data.rows, name, place)] for name in wanted]), len(wanted), "named by hand")


def draw_chosen(data: Compared, searched: Searched, chosen: Chosen, file: Path, *, title: str) -> None:
    """Draw the chosen queries, a row for each model."""
    if data.table is None:
        raise ConfigError("pictures of neighbours need the images: say which table they are in with --table.")
    pictures = _Pictures(data.table, data.rows)
    rows, names = list[list[Shown]](), list[str]()
    for place in chosen.place.tolist():
        for model, name in enumerate(data.names):
            rows.append(_row(data.rows, searched, pictures, model, place))
            names.append(name)
    level = data.level or "class"
    legend = ("same class", f"same {level}, other class" if data.level else "", f"other {level}")
    caption = f"Queries: {chosen.rule} ({chosen.n_candidates:,} of {len(searched.query):,}). Below: class, cosine."
    several = len(data.names) > 1
    draw_neighbours(rows, file, title=title, row_names=names if several else (), legend=legend, caption=caption)


def failed(data: Compared, searched: Searched, n: int) -> dict[str, tuple[str, Chosen]]:
    """Return titles and queries of what goes wrong: for one model; between two, both ways round."""
    kinds, first, last = searched.kinds, data.names[0], data.names[-1]
    if len(kinds) == 1:
        return {"failures": ("Where the nearest is wrong", failures(kinds[0], n))}
    return {
        "wins": (f"Where {first} fails and {last} succeeds", turned(kinds[0], kinds[-1], n, names=(first, last))),
        "losses": (f"Where {last} fails and {first} succeeds", turned(kinds[-1], kinds[0], n, names=(last, first))),
    }


def _neighbours(embeddings: EmbeddingTable, query: np.ndarray, gallery: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and cosines, (n_queries, k), of the nearest of each query; -1 and nan after the end of a list."""
    x = torch.from_numpy(embeddings.embedding)
    item = torch.arange(len(x)) if embeddings.item is None else torch.as_tensor(embeddings.item)
    found = nearest(x[query], x[gallery], N_NEIGHBOURS, exclude=SameItem(item[query], item[gallery]))
    length = found.start.diff()
    index = np.full((len(query), N_NEIGHBOURS), -1)
    sim = np.full((len(query), N_NEIGHBOURS), np.nan)
    filled = (torch.arange(N_NEIGHBOURS)[None] < length[:, None]).numpy()
    index[filled], sim[filled] = gallery[found.index.numpy()], found.sim.numpy()
    return index, sim


def _row_of(rows: EmbeddingTable, name: str, place: dict[int, int]) -> int:
    """Return the row of a query that is named by its row in the table, or by the end of its path."""
    if name.isdecimal():
        item = np.arange(len(rows)) if rows.item is None else rows.item
        found = np.flatnonzero(item == int(name)).tolist()
    else:
        found = [row for row, path in enumerate(rows.path) if path == name or path.endswith(f"/{name}")]
    if len(found) != 1 or found[0] not in place:
        reason = (
            "there is no such image"
            if not found
            else f"{len(found)} images"
            if len(found) > 1
            else "it only can be found, it does not ask"
        )
        raise DataError(f"--queries {name!r}: {reason}. Give the row of a query in the table (from 0), or enough of its path.")
    return found[0]


def _row(rows: EmbeddingTable, searched: Searched, pictures: "_Pictures", model: int, place: int) -> list[Shown]:
    query = int(searched.query[place])
    line = [Shown(pictures[query], _short(rows.label[query]))]
    neighbours = zip(searched.index[model][place].tolist(), searched.sim[model][place].tolist(), strict=True)
    for (row, sim), kind in zip(neighbours, searched.kinds[model][place].tolist(), strict=True):
        if row >= 0:
            line.append(Shown(pictures[row], f"{_short(rows.label[row])}\n{sim:.2f}", kind == SAME, is_near=kind == KIN))
    return line


class _Pictures:
    """Images of the rows, small, each read once."""

    def __init__(self, table: Table, rows: EmbeddingTable):
        self.images = ImageFiles.of_table(table, draft_size=PIXELS)
        self.place = {int(item): row for row, item in enumerate(table.item)}
        self.rows, self.kept = rows, dict[int, Image.Image]()

    def __getitem__(self, row: int) -> Image.Image:
        if row not in self.kept:
            item = row if self.rows.item is None else int(self.rows.item[row])
            if item not in self.place:
                raise DataError(f"the table has no row {item}: it is not the one that the embeddings were made from (--table).")
            image = self.images[self.place[item]]
            image.thumbnail((2 * PIXELS, 2 * PIXELS))
            self.kept[row] = image
        return self.kept[row]


def _short(name: object) -> str:
    """Return a name of at most 17 letters: names that begin alike often end differently."""
    text = " ".join(str(name).split())
    half = LETTERS // 2
    return text if len(text) <= LETTERS else f"{text[:half].rstrip()}…{text[-half:].lstrip()}"
