"""A grid → its cells: every configuration that will run, checked before anything does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinfold.build_objective import check_objective
from kinfold.comparison.identity import flat, identity
from kinfold.config import Config
from kinfold.errors import ConfigError, did_you_mean
from kinfold.evaluation.metric_names import metrics_of
from kinfold.evaluation.metrics import CLUSTERING
from kinfold.experiment import check_evaluation
from kinfold.grid.file import BASE, Grid, Variant

_OWN = ("run", "seed")
_ALIKE = ("evaluation", "data.root", "data.test_share", "data.hold_out_every")


@dataclass(frozen=True, eq=False)
class Cell:
    """One run of a grid.

    Attributes:
        dataset: name of the data set; empty where the grid names none.
        variant: `base` or the name of a variant.
        seed: of everything that is drawn.
        config: what is trained and measured; `config.run` is its folder.
    """

    dataset: str
    variant: str
    seed: int
    config: Config

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{f'{self.dataset}, ' if self.dataset else ''}{self.variant}, seed {self.seed}"

    @property
    def folder(self) -> Path:
        """Its run folder."""
        return Path(self.config.run)


def cells_of(grid: Grid) -> list[Cell]:
    """Return every cell: data sets × (base and variants) × seeds.

    Raises:
        ConfigError: a configuration that cannot run, with its data set, variant and key; a variant that changes nothing, or that
            would not be measured as the base is; a metric that the configurations do not measure.
    """
    cells = []
    for dataset in grid.datasets:
        configs = {variant.name: _config(grid, dataset, variant) for variant in grid.variants}
        _check_variants(dataset, configs)
        for variant in grid.variants:
            cells += [_cell(grid, dataset, variant, seed, configs[variant.name]) for seed in variant.seeds]
    return cells


def merge(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Put an overlay over a base: tables are merged, everything else is replaced.

    Example:
        >>> merge({"model": {"dim": 64, "pool": "avg"}, "seed": 0}, {"model": {"dim": 128}})
        {'model': {'dim': 128, 'pool': 'avg'}, 'seed': 0}
    """
    merged = dict(base)
    for key, value in overlay.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def check_metrics(names: Sequence[str], config: Config, where: str, *, level: str = "label") -> None:
    """Refuse a metric that has no value per query, or that the evaluation does not compute on a level.

    Raises:
        ConfigError: names the metric and what is measured.
    """
    measured = measured_on(level, config)
    for name in names:
        if name in CLUSTERING:
            raise ConfigError(f"{where} {name!r} has one value for all queries and no interval: choose a ranking metric.")
        if name not in measured:
            place = "" if level == "label" else f" on level `{level}` (`evaluation.coarse_metrics`)"
            raise ConfigError(f"{where} {name!r} is not measured{place}: {did_you_mean(name, measured)}")


def measured_on(level: str, config: Config) -> list[str]:
    """Return the names of the metrics that a configuration measures on a level."""
    return [metric.name for metric in metrics_of(config.evaluation.metrics_on(level), config.evaluation.ks)]


def shown_on(level: str, names: Sequence[str], cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return those of the tables' metrics that every cell measures on a level."""
    return tuple(name for name in names if all(name in measured_on(level, cell.config) for cell in cells))


def _cell(grid: Grid, dataset: str, variant: Variant, seed: int, config: Config) -> Cell:
    place = grid.folder / dataset / variant.name if len(grid.datasets) > 1 else grid.folder / variant.name
    own = config.model_copy(update={"seed": seed, "run": (place / f"seed-{seed}").as_posix()})
    return Cell(dataset, variant.name, seed, own)


def _config(grid: Grid, dataset: str, variant: Variant) -> Config:
    overlay = grid.datasets[dataset]
    where = [f"dataset `{dataset}`"] if dataset else []
    where += [f"variant `{variant.name}`" if variant.name != BASE else "[base]"]
    try:
        for values in (grid.base, overlay, variant.overlay):
            _refuse_own_keys(values)
        _refuse_other_measures(variant)
        config = Config(**{**merge(merge(grid.base, overlay), variant.overlay), "run": "run"})
        check_evaluation(config.evaluation)
        _check_tables(grid, config)
        check_objective(config.objective, dim=config.model.dim or 4)
    except ConfigError as error:
        raise ConfigError(f"{', '.join(where)}: {error}") from None
    if not config.evaluation.after_training:
        raise ConfigError(f"{', '.join(where)}: `evaluation.after_training` = false: the runs of a grid are measured; remove it.")
    return config.model_copy(update={"evaluation": config.evaluation.model_copy(update={"keep_embeddings": False})})


def _check_tables(grid: Grid, config: Config) -> None:
    """Refuse a metric of the tables that is not measured, and a level that has none of them."""
    known = {level: set(measured_on(level, config)) for level in grid.levels}
    for name in grid.metrics:
        if name in CLUSTERING or not any(name in names for names in known.values()):
            check_metrics([name], config, "the metric", level=grid.levels[0])
    for level, names in known.items():
        if not names & set(grid.metrics):
            check_metrics(grid.metrics, config, "the metric", level=level)


def _refuse_own_keys(values: Mapping[str, Any]) -> None:
    for key in _OWN:
        if key in values:
            raise ConfigError(f"`{key}` is set by the grid (`seeds`, `folder`): remove it.")


def _refuse_other_measures(variant: Variant) -> None:
    for key in flat(variant.overlay):
        if any(key == name or key.startswith(f"{name}.") for name in _ALIKE):
            raise ConfigError(f"`{key}` must be that of the base: variants are compared on the same images, measured alike.")


def _check_variants(dataset: str, configs: Mapping[str, Config]) -> None:
    base = configs[BASE]
    where = f"dataset `{dataset}`, " if dataset else ""
    for name, config in configs.items():
        if name != BASE and identity(config.model_dump(mode="json")) == identity(base.model_dump(mode="json")):
            raise ConfigError(f"{where}variant `{name}` has the base's settings: it would be trained twice; remove it.")
        if config.data.hold_out_every and _chooses_epoch(config) != _chooses_epoch(base):
            raise ConfigError(
                f"{where}variant `{name}`: the last epoch of the one would be compared with the best of several of the other "
                f"(`train.epochs` {base.train.epochs}, here {config.train.epochs}): set `train.evaluate_every` to the epochs in both, "
                "or remove `data.hold_out_every`."
            )


def _chooses_epoch(config: Config) -> bool:
    """Whether there is more than one validation, so that the best epoch is kept."""
    return config.train.epochs > config.train.evaluate_every
