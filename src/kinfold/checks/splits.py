"""What the classes of a table's splits say about training on them and measuring on them."""

from collections import Counter

import numpy as np

from kinfold.checks.finding import Finding, places
from kinfold.checks.wording import counted, listed, shown
from kinfold.data.levels import sorted_names
from kinfold.data.table import Table

EVALUATED = ("val", "test")
UNBALANCED = 20


def split_findings(table: Table) -> list[Finding]:
    """Look at the classes of each split.

    Returns:
        `single_image_class` (warning): nothing to find, or no pair to train on. `unused_rows` (warning): neither query nor gallery.
        `no_protocol` (warning): a split without queries or without gallery. `open_set`, `closed_set` (note), `mixed_set` (warning):
        how the classes of a split go with those trained on. `one_split` (note): nothing to measure on, or to train on.
        `unbalanced_classes` (note).
    """
    findings = _without_pair(table)
    for split in EVALUATED:
        findings += [*_flags(table, split), *_nothing_to_find(table, split), *_overlap(table, split)]
    return [*findings, *_one_split(table), *_balance(table)]


def _without_pair(table: Table) -> list[Finding]:
    rows = table.split_rows("train")
    n_images = Counter(table.label[row] for row in rows)
    alone = [row for row in rows.tolist() if n_images[table.label[row]] == 1]
    if not alone:
        return []
    return [
        Finding(
            "single_image_class",
            "warning",
            f"{counted(len(alone), 'class', 'classes')} of {len(n_images):,} in train {'has' if len(alone) == 1 else 'have'} a single "
            f"image: {listed([table.label[row] for row in alone])}",
            "add images, check the spelling of the labels, or remove the rows: a lone image has no positive pair, only its proxy",
            **places(table, alone),
        )
    ]


def _nothing_to_find(table: Table, split: str) -> list[Finding]:
    rows = table.split_rows(split)
    query, gallery = _query_and_gallery(table, rows)
    label = table.class_index[rows]
    n_gallery = np.bincount(label[gallery], minlength=table.n_classes)
    lone = query & (n_gallery[label] - gallery == 0)  # an image does not find itself
    if not lone.any():
        return []
    classes = sorted_names(tuple(table.label[row] for row in rows[lone]))
    return [
        Finding(
            "single_image_class",
            "warning",
            f"{counted(int(lone.sum()), 'query', 'queries')} of {int(query.sum()):,} in {split} have nothing to find, in "
            f"{counted(len(classes), 'class', 'classes')}: {listed(classes)}",
            "add images of these classes or remove the rows: such queries are left out of the scores",
            **places(table, rows[lone].tolist()),
        )
    ]


def _flags(table: Table, split: str) -> list[Finding]:
    rows = table.split_rows(split)
    if table.is_query is None or table.is_gallery is None or not rows.size:
        return []
    query, gallery = table.is_query[rows], table.is_gallery[rows]
    if not query.any() or not gallery.any():
        return [
            Finding(
                "no_protocol",
                "warning",
                f"{split} has {counted(int(query.sum()), 'query', 'queries')} and {counted(int(gallery.sum()), 'gallery image')}, so "
                "that every image will search all others",
                "mark queries and gallery in `is_query` and `is_gallery`, or drop both columns",
            )
        ]
    unused = rows[~query & ~gallery]
    if not unused.size:
        return []
    return [
        Finding(
            "unused_rows",
            "warning",
            f"{counted(unused.size, 'image')} of {rows.size:,} in {split} {'is' if unused.size == 1 else 'are'} neither query nor "
            "gallery and will never be used",
            "set `is_query` or `is_gallery`, or remove the rows",
            **places(table, unused.tolist()),
        )
    ]


def _overlap(table: Table, split: str) -> list[Finding]:
    n_classes = len({table.label[row] for row in table.split_rows(split)})
    if not n_classes or not table.split_rows("train").size:
        return []
    shared = table.shared_classes("train", split)
    if not shared:
        message = f"{split} is an open set: none of its {counted(n_classes, 'class', 'classes')} is trained on"
        return [Finding("open_set", "note", message, "nothing to do: scores are on unseen classes")]
    if len(shared) == n_classes:
        return [
            Finding(
                "closed_set",
                "note",
                f"{split} is a closed set: all of its {counted(n_classes, 'class', 'classes')} are trained on",
                "say so with allow_shared_classes = true; for scores on unseen classes, make splits with `split_classes`",
            )
        ]
    return [
        Finding(
            "mixed_set",
            "warning",
            f"{len(shared):,} of the {n_classes:,} classes of {split} are trained on, the others are not: {listed(shared)}",
            f"move their rows to one side (`split_classes` makes clean splits); if both kinds are meant to be in {split}, say so with "
            "allow_shared_classes = true",
            **places(table, [row for row in table.split_rows(split).tolist() if table.label[row] in set(shared)]),
        )
    ]


def _one_split(table: Table) -> list[Finding]:
    present = set(table.split)
    if present == {"train"}:
        remedy = "keep classes for the test (`data.test_share = 0.5`, or `split_classes`), or write a column `split`; scores on trained classes say little about new ones"
        return [Finding("one_split", "note", "every row is train: there is nothing to measure on", remedy)]
    if present and "train" not in present:
        remedy = "nothing to do if the table is for evaluation alone"
        return [Finding("one_split", "note", "no row is train: there is nothing to train on", remedy)]
    return []


def _balance(table: Table) -> list[Finding]:
    n_images = Counter(table.label[row] for row in table.split_rows("train"))
    if not n_images:
        return []
    (most, n_most), *_ = n_images.most_common()
    least, n_least = min(n_images.items(), key=lambda entry: entry[1])
    if n_most < UNBALANCED * n_least:
        return []
    middle = int(np.median(list(n_images.values())))
    return [
        Finding(
            "unbalanced_classes",
            "note",
            f"the classes of train have {n_least:,} ({shown(least)}) to {n_most:,} images ({shown(most)}), {middle:,} in the middle",
            "sample images by class (batches.images_per_class), so that small classes are seen as often as large ones",
        )
    ]


def _query_and_gallery(table: Table, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the rows search and which can be found, as the evaluation takes them."""
    if table.is_query is not None and table.is_gallery is not None:
        query, gallery = table.is_query[rows], table.is_gallery[rows]
        if query.any() and gallery.any():
            return query, gallery
    everything = np.ones(len(rows), dtype=bool)
    return everything, everything
