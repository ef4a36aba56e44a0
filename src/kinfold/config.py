"""A run's whole configuration, read from TOML and `key=value` overrides."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from kinfold.engine.settings import LoopSettings, OptimizerSettings, ScheduleSettings, StageSettings
from kinfold.errors import ConfigError
from kinfold.objective_settings import ObjectiveSettings
from kinfold.recipe import BatchSettings, CacheSettings, Recipe
from kinfold.settings import Settings


class DataSettings(Settings):
    """The images.

    Attributes:
        root: a table file, a folder that holds `table.csv`, or a folder with one folder per class; `$NAME` stands for the
            environment variable of that name. `kinfold:glyphs`: the demo's characters, drawn when they are first wanted.
        taxonomy: a file whose levels of classes are put onto the table (`kinfold.read_hierarchy`); `$NAME` as in `root`; `None`: none.
        size: side of the square that the model sees, in pixels; `None`: the trunk's own.
        resize: `crop` (shorter side, then the centre) or `squash` (to a square); `None`: the trunk's own.
        crop_ratio: share of the shorter side that the centre crop keeps; `None`: the trunk's own.
        test_share: share of the classes, the last by sorted name, that are kept for the test, where the table does not say; `None`: none.
        hold_out_every: every so manyeth training class, by sorted name, is kept for validation; `None`: none.
    """

    root: str
    taxonomy: str | None = Field(default=None, min_length=1)
    size: int | None = Field(default=None, ge=8)
    resize: Literal["crop", "squash"] | None = None
    crop_ratio: float | None = Field(default=None, gt=0, le=1)
    test_share: float | None = Field(default=None, gt=0, lt=1)
    hold_out_every: int | None = Field(default=None, ge=2)


class ModelSettings(Settings):
    """The embedding model.

    Attributes:
        trunk: a timm name, or `convnet`.
        pretrained: start from published weights.
        dim: size of the embedding; `None`: the trunk's features as they are.
        pool: `avg`, `max`, `avg+max` or `gem`.
        layer_norm: normalise the pooled feature (without affine weights) before the head.
        frozen: what does not train: `trunk`, or the name of the last block that does not; `None`: everything trains.
        head_start: the head's first weights: `random`, or the `pca` or `whitening` of the training images' features.
    """

    trunk: str = "tf_efficientnet_lite0"
    pretrained: bool = True
    dim: int | None = Field(default=128, ge=1)
    pool: str = "avg"
    layer_norm: bool = False
    frozen: str | None = None
    head_start: Literal["random", "pca", "whitening"] = "random"


class EvaluationSettings(Settings):
    """How the finished model is measured.

    Attributes:
        split: the part of the table that is measured.
        ks: cut-offs of recall and precision.
        similarity: larger = more alike.
        metrics: such as `map_at_r`, `recall_at_k` (for each k of `ks`) or `recall_at_1`; `None`: all rank metrics.
        coarse_metrics: the same for the levels above `label`; `None`: those of `metrics`. Ranks as deep as map_at_r needs them cost many
            times as long there as recall_at_1 does.
        memory: what the blocks of similarities may take.
        levels: of the labels to measure after training; `None`: all. Coarse levels take many times as long, and `kinfold evaluate`
            measures them at any time.
        after_training: measure once when training is done.
        keep_embeddings: write the embeddings that were measured into the run folder.
    """

    split: Literal["train", "val", "test"] = "test"
    ks: tuple[int, ...] = (1, 2, 4, 8)
    similarity: str = "cosine"
    metrics: tuple[str, ...] | None = None
    coarse_metrics: tuple[str, ...] | None = None
    memory: str = "512MB"
    levels: tuple[str, ...] | None = None
    after_training: bool = True
    keep_embeddings: bool = True

    def metrics_on(self, level: str) -> tuple[str, ...] | None:
        """Return the metrics of a level, as `metrics` names them."""
        return self.metrics if level == "label" or self.coarse_metrics is None else self.coarse_metrics


class Config(Settings):
    """Everything that `kinfold train` reads from a file.

    Attributes:
        run: the run folder; by default `runs/` and the file's name.
        seed: of everything that is drawn.
        data: the images.
        model: the embedding model.
        objective: what is minimised.
        batches: how batches are made.
        cache: how outputs of a frozen part are kept.
        train: the loop.
        optimizer: learning rates, by group if need be.
        schedule: how learning rates move.
        stage: optimiser and schedule by stage.
        evaluation: how the finished model is measured.
        allow_shared_classes: accept classes that are both trained on and evaluated on.
    """

    run: str
    seed: int = 0
    data: DataSettings
    model: ModelSettings = ModelSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    batches: BatchSettings = BatchSettings()
    cache: CacheSettings = CacheSettings()
    train: LoopSettings = LoopSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    stage: dict[str, StageSettings] = Field(default_factory=dict)
    evaluation: EvaluationSettings = EvaluationSettings()
    allow_shared_classes: bool = False

    @property
    def recipe(self) -> Recipe:
        """The part that is about training alone."""
        return Recipe(**{name: getattr(self, name) for name in Recipe.model_fields})


def read_config(file: str | Path, overrides: Iterable[str] = ()) -> Config:
    """Read a TOML file and put `key=value` overrides over it.

    Args:
        file: the TOML file.
        overrides: such as `train.epochs=3`; values are TOML values, anything else is text.

    Raises:
        ConfigError: no such file, not TOML, an unknown key (with the nearest name), a value out of range.
    """
    file = Path(file)
    values = read_toml(file, "a configuration such as those in experiments/")
    values.setdefault("run", str(Path("runs") / file.stem))
    for override in overrides:
        put_override(values, override)
    return Config(**values)


def read_toml(file: Path, wanted: str) -> dict[str, Any]:
    """Read a TOML file.

    Args:
        file: which.
        wanted: what to name instead, for the message.

    Raises:
        ConfigError: no such file, or not TOML.
    """
    if not file.is_file():
        raise ConfigError(f"{file} is no file: name {wanted}.")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} is not TOML: {error}") from None


def put_override(values: dict[str, Any], override: str) -> None:
    """Put one `key=value` into a configuration's values, in place.

    Raises:
        ConfigError: it is not of that form, or the key leads through a value.
    """
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise ConfigError(f"override {override!r} is not of the form key=value, such as train.epochs=3")
    for part in parts[:-1]:
        values = values.setdefault(part, {})
        if not isinstance(values, dict):
            raise ConfigError(f"override {override!r}: `{part}` is a value and has no keys below it")
    values[parts[-1]] = _value(text.strip())


def _value(text: str) -> Any:
    if text.lower() in {"none", "null"}:
        return None
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, bool | int | float | str | list | dict) else text  # a date is meant as text
