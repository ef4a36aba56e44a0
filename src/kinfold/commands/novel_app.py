"""The sub-commands `kinfold novel show | map | align | cost | ratios`."""

from pathlib import Path
from typing import Annotated

import typer

from kinfold.commands.group import CONTEXT, Commands
from kinfold.commands.options import Device, Json, Workers

novel = typer.Typer(
    cls=Commands,
    context_settings=CONTEXT,
    no_args_is_help=True,
    help="Generated classes (l2a_nc): look at them, measure them, cost them.",
)
RunFolder = Annotated[str, typer.Argument(help="The folder of a run with objective.name = 'l2a_nc'.")]


@novel.command("show")
def novel_show(
    runs: Annotated[list[str], typer.Argument(help="Run folders; those of proxy_synthesis may stand beside those of l2a_nc.")],
    picture: Annotated[Path | None, typer.Option(help="Draw the numbers over training: .png, .svg or .pdf.")] = None,
    as_json: Json = False,
) -> None:
    """Show how alike generated classes are to themselves and to real ones, how wide they are, and which real class is nearest."""
    from kinfold.commands.novel_show import show_novel_command

    show_novel_command(runs, picture=picture, as_json=as_json)


@novel.command("map")
def novel_map(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("figures"),
    max_images: Annotated[int, typer.Option(min=50, help="At most so many real images of each split.")] = 1500,
    per_class: Annotated[int, typer.Option(min=2, help="Generated vectors of each class.")] = 8,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn by chance.")] = 0,
    workers: Workers = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Draw generated vectors among real ones, and alone, by t-SNE."""
    from kinfold.commands.novel_map import MapOptions, map_novel_command

    options = MapOptions(out=out, max_images=max_images, per_class=per_class, seed=seed, workers=workers, device=device)
    map_novel_command(run, options, as_json=as_json)


@novel.command("align")
def novel_align(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    run: RunFolder,
    unseen: Annotated[str, typer.Option(help="Split of the classes that were never trained on: test or val.")] = "test",
    vectors: Annotated[
        int | None, typer.Option(min=2, help="Vectors of each class; default: the smallest class's, 10 to 50.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything that is drawn by chance.")] = 0,
    workers: Workers = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Measure whether generated classes lie nearer to unseen classes than training classes do (KL divergence)."""
    from kinfold.commands.novel_align import align_novel_command

    align_novel_command(run, unseen=unseen, vectors=vectors, seed=seed, workers=workers, device=device, as_json=as_json)


@novel.command("cost")
def novel_cost(
    config: Annotated[Path, typer.Argument(help="A configuration with any objective.", metavar="CONFIG.toml")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings put over the file's.", metavar="[KEY=VALUE]...")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Steps of each that are timed, in turn.")] = 9,
    as_json: Json = False,
) -> None:
    """Measure what Proxy Synthesis and generated classes cost beside the loss alone: time, numbers that train, memory."""
    from kinfold.commands.novel_cost import cost_novel_command

    cost_novel_command(config, overrides or [], rounds=rounds, as_json=as_json)


@novel.command("ratios")
def novel_ratios(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    config: Annotated[Path, typer.Argument(help="A configuration with objective.name = 'l2a_nc'.", metavar="CONFIG.toml")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Settings put over the file's.", metavar="[KEY=VALUE]...")] = None,
    ratios: Annotated[
        str, typer.Option(help="Novel classes for each real one; 0, the base, is always among them.")
    ] = "0.5,1,2,4",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 3,
    metric: Annotated[str, typer.Option(help="What the picture shows.")] = "map_at_r",
    processes: Annotated[int, typer.Option(min=1, help="Processes that run cells, one thread each.")] = 1,
    picture: Annotated[Path | None, typer.Option(help="Draw the curve: .png, .svg or .pdf.")] = None,
    as_json: Json = False,
) -> None:
    """Train with several numbers of novel classes, each several times, and compare with none."""
    from kinfold.commands.novel_ratios import RatioOptions, ratios_novel_command

    options = RatioOptions(ratios=ratios, seeds=seeds, metric=metric, processes=processes, picture=picture)
    ratios_novel_command(config, overrides or [], options, as_json=as_json)
