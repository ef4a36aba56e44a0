"""`kinfold embed`: a model and a table → a file of embeddings."""

from pathlib import Path

from kinfold.commands.models import load_model
from kinfold.commands.output import say
from kinfold.data.read import read_table
from kinfold.embeddings import SUFFIXES
from kinfold.errors import DataError
from kinfold.measure import embed_table, with_columns


def embed_command(  # noqa: PLR0913 (a command's options)
    model: str, table: str, out: Path, *, split: str | None, size: int | None, workers: int, device: str | None
) -> None:
    """Write the embeddings of a table, or of one split, with its columns."""
    if out.suffix not in SUFFIXES:
        raise DataError(f"--out {out}: the name must end in {' or '.join(SUFFIXES)}.")
    rows = read_table(table)
    rows = rows if split is None else rows.of_split(split)
    embedder = load_model(model, size=size, device=device)
    say(f"embedding {len(rows):,} images")
    with_columns(rows, embed_table(embedder, rows, workers=workers)).save(out)
    print(out)
