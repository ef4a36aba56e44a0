"""The command line: what a person types; chatter goes to stderr, results to stdout."""

import os
from pathlib import Path
from typing import Annotated

import typer

from kinfold.commands.group import CONTEXT, Commands
from kinfold.commands.hierarchy_app import hierarchy
from kinfold.commands.novel_app import novel
from kinfold.commands.options import Device, Json, Size, Split, Table, Workers

EPILOG = "Exit codes: 0 ok, 1 the run failed or a check found an error, 2 usage, configuration or data error, 130 stopped by Ctrl-C (saved)."


app = typer.Typer(
    cls=Commands,
    context_settings=CONTEXT,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=EPILOG,
    help="Train image embeddings that keep working on classes they have never seen, and measure them honestly.",
)


@app.command()
def train(
    config: Annotated[Path, typer.Argument(help="A TOML file, such as those in experiments/.", metavar="CONFIG.toml")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings put over the file's: train.epochs=3", metavar="[KEY=VALUE]...")
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a model; an interrupted run goes on from where it stopped."""
    from kinfold.commands.train import train_command

    train_command(config, overrides or [], as_json=as_json)


@app.command()
def evaluate(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    target: Annotated[str, typer.Argument(help="A run folder, a model folder, a trunk's name, or a file of embeddings.")],
    table: Table = None,
    split: Split = None,
    ks: Annotated[str, typer.Option(help="Cut-offs of recall and precision.")] = "1,2,4,8",
    metrics: Annotated[str | None, typer.Option(help="Names such as recall,map_at_r,nmi; default: all rank metrics.")] = None,
    similarity: Annotated[str, typer.Option(help="cosine, dot, negative_euclidean, …")] = "cosine",
    memory: Annotated[str, typer.Option(help="What the blocks of similarities may take.")] = "512MB",
    size: Size = None,
    resize: Annotated[str | None, typer.Option(help="crop or squash, for a trunk's name only.")] = None,
    workers: Workers = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Measure a model or embeddings: recall, MAP@R and more, per level, with intervals."""
    from kinfold.commands.evaluate import EvaluateOptions, evaluate_command

    options = EvaluateOptions(
        table=table,
        split=split,
        ks=ks,
        metrics=metrics,
        similarity=similarity,
        memory=memory,
        size=size,
        resize=resize,
        workers=workers,
        device=device,
    )
    evaluate_command(target, options, as_json=as_json)


@app.command()
def verify(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    target: Annotated[str, typer.Argument(help="A run folder, a model folder, a trunk's name, or a file of embeddings.")],
    table: Table = None,
    fit_on: Annotated[str, typer.Option(help="Split of the held-out classes that thresholds are fitted on.")] = "val",
    split: Split = None,
    far: Annotated[str, typer.Option(help="False accept rates, in (0, 1].")] = "1e-3,1e-2",
    similarity: Annotated[str, typer.Option(help="cosine, dot, negative_euclidean, …")] = "cosine",
    memory: Annotated[str, typer.Option(help="What the blocks of similarities may take.")] = "512MB",
    allow_shared_classes: Annotated[bool, typer.Option(help="Accept classes that are both fitted on and judged by.")] = False,
    size: Size = None,
    workers: Workers = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Same class or not: EER, AUC, TAR at FAR, and thresholds fitted on held-out classes."""
    from kinfold.commands.verify import VerifyOptions, verify_command

    options = VerifyOptions(
        table=table,
        fit_on=fit_on,
        split=split,
        far=far,
        similarity=similarity,
        memory=memory,
        size=size,
        workers=workers,
        device=device,
        allow_shared_classes=allow_shared_classes,
    )
    verify_command(target, options, as_json=as_json)


@app.command()
def grid(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    file: Annotated[Path, typer.Argument(help="A TOML file with [base], [variants.…] and [datasets.…].", metavar="FILE.toml")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings put over the base's: train.epochs=3", metavar="[KEY=VALUE]...")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Processes that run cells, one thread each.")] = 1,
    select: Annotated[str | None, typer.Option(help="Choose a variant by this metric on held-out classes first.")] = None,
    level: Annotated[str | None, typer.Option(help="Level of the labels that the tables show; default: the file's.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file and list the runs; run nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Run a base and its variants with several seeds, each once, and compare them with paired intervals."""
    from kinfold.commands.grid import GridOptions, grid_command

    options = GridOptions(processes=processes, select=select, level=level, dry_run=dry_run, as_json=as_json)
    grid_command(file, overrides or [], options)


@app.command()
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders; the first is the base.", metavar="RUN RUN [RUN]...")],
    split: Annotated[str, typer.Option(help="The split that was measured: train, val or test.")] = "test",
    level: Annotated[str, typer.Option(help="Level of the labels.")] = "label",
    metrics: Annotated[str, typer.Option(help="Names such as recall_at_1,map_at_r.")] = "recall_at_1,map_at_r",
    factor: Annotated[list[str] | None, typer.Option(help="A setting that is meant to differ, such as model.dim.")] = None,
    as_json: Json = False,
) -> None:
    """Compare measured runs: paired differences with intervals over queries and over classes; seeds of one configuration are grouped."""
    from kinfold.commands.compare import CompareOptions, compare_command

    options = CompareOptions(split=split, level=level, metrics=metrics, factor=tuple(factor or ()), as_json=as_json)
    compare_command(runs, options)


@app.command()
def figures(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    runs: Annotated[
        list[str],
        typer.Argument(help="Run folders, base first; with --table also models; or files of embeddings.", metavar="RUN [RUN]..."),
    ],
    level: Annotated[str | None, typer.Option(help="Level of the super-categories; default: the table's first.")] = None,
    split: Annotated[str, typer.Option(help="Part of the table: train, val or test.")] = "test",
    kind: Annotated[str, typer.Option(help="map, neighbours or all.")] = "all",
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("figures"),
    max_images: Annotated[int, typer.Option(min=3, help="Points of a map; more are drawn by lot.")] = 3000,
    queries: Annotated[list[str] | None, typer.Option(help="Rows of the table, or ends of paths, instead of the rule's.")] = None,
    n_queries: Annotated[int, typer.Option(min=1, help="Queries of a picture.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="Of the lot and of the layout.")] = 0,
    table: Table = None,
    workers: Workers = 0,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Draw maps of unseen classes and queries with their neighbours, of one run or of several side by side."""
    from kinfold.commands.figures import FigureOptions, figures_command

    options = FigureOptions(
        level=level,
        split=split,
        kind=kind,
        out=out,
        max_images=max_images,
        queries=queries or (),
        n_queries=n_queries,
        seed=seed,
        table=table,
        workers=workers,
        device=device,
    )
    figures_command(runs, options, as_json=as_json)


@app.command()
def check(
    target: Annotated[str, typer.Argument(help="A configuration (.toml), a table file, or a folder of images.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings put over a configuration's: train.epochs=3", metavar="[KEY=VALUE]...")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings count as errors for the exit code.")] = False,
    workers: Annotated[int | None, typer.Option(min=0, help="Processes that read images; default: up to 4.")] = None,
    as_json: Json = False,
) -> None:
    """Find what is wrong with images, labels and splits, or with a configuration, before training; exit code 1 if there is an error."""
    from kinfold.commands.check import check_command

    if workers is None:
        n_cores = os.cpu_count() or 1
        workers = min(n_cores, 4) if n_cores > 1 else 0
    raise typer.Exit(check_command(target, overrides or [], workers=workers, strict=strict, as_json=as_json))


@app.command()
def embed(  # noqa: PLR0913, PLR0917 (a command's options are its parameters)
    model: Annotated[str, typer.Argument(help="A run folder, a model folder, or a trunk's name.")],
    table: Annotated[str, typer.Argument(help="A table file, a folder with table.csv, or a folder per class.")],
    out: Annotated[Path, typer.Option(help="Where to: a file that ends in .npz or .parquet.")] = Path("embeddings.npz"),
    split: Split = None,
    size: Size = None,
    workers: Workers = 0,
    device: Device = None,
) -> None:
    """Embed the images of a table into a file that `evaluate` reads."""
    from kinfold.commands.embed import embed_command

    embed_command(model, table, out, split=split, size=size, workers=workers, device=device)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for images, run and picture.")] = Path("demo"),
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training characters.")] = 6,
    as_json: Json = False,
) -> None:
    """Train on Latin and Greek characters, search in Cyrillic, Georgian and Armenian."""
    from kinfold.commands.demo import demo_command

    demo_command(out, epochs=epochs, as_json=as_json)


@app.command()
def ls(
    what: Annotated[str, typer.Argument(help="losses, objectives, divergences, miners, similarities, trunks, metrics or runs.")],
    pattern: Annotated[str, typer.Argument(help="For trunks: part of the name; for runs: the folder that holds them.")] = "",
    as_json: Json = False,
) -> None:
    """List what can be named in a configuration, or the runs of a folder."""
    from kinfold.commands.ls import ls_command

    ls_command(what, pattern, as_json=as_json)


cache = typer.Typer(
    cls=Commands, context_settings=CONTEXT, no_args_is_help=True, help="Outputs of frozen models that are kept on the disk."
)
app.add_typer(cache, name="cache")
app.add_typer(hierarchy, name="hierarchy")
app.add_typer(novel, name="novel")
CacheFolder = Annotated[str | None, typer.Option("--folder", help="Default: $KINFOLD_CACHE, else the user's cache folder.")]


@cache.command("ls")
def cache_ls(folder: CacheFolder = None, as_json: Json = False) -> None:
    """List what is kept: of which model, up to which block, of how many images, how large, used when."""
    from kinfold.commands.cache import cache_ls_command

    cache_ls_command(folder, as_json=as_json)


@cache.command("clear")
def cache_clear(
    keys: Annotated[list[str] | None, typer.Argument(help="Keys that `cache ls` shows; none: all.", metavar="[KEY]...")] = None,
    folder: CacheFolder = None,
    unused_days: Annotated[float | None, typer.Option(min=0, help="Only what was not used for so many days.")] = None,
) -> None:
    """Remove what is kept; it is computed again when it is needed."""
    from kinfold.commands.cache import cache_clear_command

    cache_clear_command(keys or [], folder, unused_days=unused_days)


def main() -> None:
    """Run the command line."""
    from kinfold.allocator import keep_freed_memory

    keep_freed_memory()
    app()


if __name__ == "__main__":
    main()
