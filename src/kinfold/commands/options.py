"""Options that several commands share."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")]
Split = Annotated[str | None, typer.Option(help="Part of the table: train, val or test.")]
Table = Annotated[str | None, typer.Option(help="A table file, a folder with table.csv, or a folder per class.")]
Size = Annotated[int | None, typer.Option(help="Side of the images, for a trunk's name only.")]
Workers = Annotated[int, typer.Option(min=0, help="Processes that load images.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, mps; default: an accelerator if there is one.")]
