"""The sub-commands `kinfold hierarchy show | fit | compare | score`."""

from pathlib import Path
from typing import Annotated

import typer

from kinfold.commands.group import CONTEXT, Commands
from kinfold.commands.options import Device, Json, Table, Workers

hierarchy = typer.Typer(
    cls=Commands, context_settings=CONTEXT, no_args_is_help=True, help="Groups of classes: look at them, find them, compare them."
)
Grouped = Annotated[str, typer.Argument(help="A run folder, a table or its folder, or a taxonomy file.")]


@hierarchy.command("show")
def hierarchy_show(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    target: Grouped,
    level: Annotated[list[str] | None, typer.Option(help="Only this level; may come several times.")] = None,
    moves: Annotated[bool, typer.Option("--moves", help="How many classes changed their group, epoch by epoch.")] = False,
    exemplars: Annotated[int | None, typer.Option(min=1, help="Draw so many typical images of each group into --out.")] = None,
    out: Annotated[Path | None, typer.Option(help="Picture of the exemplars: .png, .svg or .pdf.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the tree: .png, .svg or .pdf.")] = None,
    workers: Workers = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Show the groups that a run learned, or those of a table or a taxonomy."""
    from kinfold.commands.hierarchy_show import ShowOptions, show_hierarchy_command

    options = ShowOptions(
        levels=tuple(level or ()),
        moves=moves,
        exemplars=exemplars,
        out=out,
        picture=picture,
        workers=workers,
        device=device,
    )
    show_hierarchy_command(target, options, as_json=as_json)


@hierarchy.command("fit")
def hierarchy_fit(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    target: Annotated[str, typer.Argument(help="A run folder, a model folder, a trunk's name, or a file of embeddings.")],
    sizes: Annotated[str, typer.Option(help="Number of groups of each level, the finest first, such as 20,5.")],
    table: Table = None,
    split: Annotated[str, typer.Option(help="Whose classes are grouped: train, val or test.")] = "train",
    method: Annotated[str, typer.Option(help="kmeans, gmm or agglomerative.")] = "kmeans",
    space: Annotated[str, typer.Option(help="unit: directions, as cosine sees them; raw: vectors as they are.")] = "unit",
    seed: Annotated[int, typer.Option(help="Of the clustering.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the groups into this CSV, for `data.taxonomy`.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw the tree: .png, .svg or .pdf.")] = None,
    workers: Workers = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Group classes by the means of their embeddings."""
    from kinfold.commands.hierarchy_fit import FitOptions, fit_hierarchy_command

    options = FitOptions(
        sizes=sizes,
        table=table,
        split=split,
        method=method,
        space=space,
        seed=seed,
        out=out,
        picture=picture,
        workers=workers,
        device=device,
    )
    fit_hierarchy_command(target, options, as_json=as_json)


@hierarchy.command("compare")
def hierarchy_compare(
    one: Grouped,
    other: Grouped,
    permutations: Annotated[int, typer.Option(min=1, help="Shuffled groupings that p counts.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the shuffles.")] = 0,
    as_json: Json = False,
) -> None:
    """Say how well the levels of two groupings agree, against chance."""
    from kinfold.commands.hierarchy_compare import compare_hierarchies_command

    compare_hierarchies_command(one, other, permutations=permutations, seed=seed, as_json=as_json)


@hierarchy.command("score")
def hierarchy_score(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    target: Annotated[str, typer.Argument(help="A run folder, a model folder, a trunk's name, or a file of embeddings.")],
    taxonomy: Annotated[Path | None, typer.Option(help="A taxonomy file; default: the levels of the images' table.")] = None,
    table: Table = None,
    split: Annotated[str, typer.Option(help="Part of the table: train, val or test.")] = "test",
    ks: Annotated[str, typer.Option(help="Cut-offs.")] = "1,5,10",
    workers: Workers = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Say how far off the nearest neighbours are: recall by level, height of common ancestors, severity of mistakes."""
    from kinfold.commands.hierarchy_score import ScoreOptions, score_hierarchy_command

    options = ScoreOptions(taxonomy=taxonomy, table=table, split=split, ks=ks, workers=workers, device=device)
    score_hierarchy_command(target, options, as_json=as_json)
