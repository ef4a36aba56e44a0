"""A recipe: how batches are made and how weights are moved, apart from data, model and objective."""

from typing import Literal

from pydantic import Field, model_validator

from kinfold.engine.settings import FitSettings, LoopSettings, OptimizerSettings, ScheduleSettings, StageSettings
from kinfold.errors import ConfigError
from kinfold.settings import Settings


class BatchSettings(Settings):
    """How training batches are drawn and augmented.

    Attributes:
        batch_size: images a batch.
        sampler: `m_per_class` (so many images of each class), `hierarchical` (the same, several classes of each of several groups)
            or `random`.
        images_per_class: of `m_per_class` and `hierarchical`.
        level: whose groups `hierarchical` takes, such as `family`; for it alone.
        classes_per_group: of `hierarchical`.
        augment: train on random views; `false` trains on the evaluation view, and the three settings below do nothing.
        crop_scale: share of the area that a random crop keeps, smallest and largest.
        flip: mirror half of the images; switch it off where left and right matter (characters).
        color_jitter: strength of random brightness, contrast and saturation; 0: none.
        workers: processes that load images; 0 loads in the training process.
        on_broken: `stop` at an unreadable image, or `skip` and count it.
    """

    batch_size: int = Field(default=64, ge=1)
    sampler: Literal["m_per_class", "hierarchical", "random"] = "m_per_class"
    images_per_class: int = Field(default=4, ge=1)
    level: str | None = None
    classes_per_group: int = Field(default=4, ge=2)
    augment: bool = True
    crop_scale: tuple[float, float] = (0.4, 1.0)
    flip: bool = True
    color_jitter: float = Field(default=0.0, ge=0, le=1)
    workers: int = Field(default=0, ge=0)
    on_broken: Literal["stop", "skip"] = "stop"

    @model_validator(mode="after")
    def _level_goes_with_hierarchical(self) -> "BatchSettings":
        if self.level is not None and self.sampler != "hierarchical":
            raise ConfigError(
                f"`level` = {self.level!r} does nothing with `sampler` = {self.sampler!r}: remove it, or set `sampler` = 'hierarchical'."
            )
        return self


class CacheSettings(Settings):
    """Outputs of the frozen part of a model, computed once and kept on the disk.

    Attributes:
        use: keep them; `false` computes them anew each time, with the same result.
        views: how many random views of each training image there are, so that they can be kept: epoch e trains on view e mod
            `views`. `None`: a fresh view each epoch, so that only what is not random is kept (evaluation, and training with
            `batches.augment = false`).
        half: keep float16 instead of float32: half the disk, three decimal digits.
        folder: where; `None`: the environment variable `KINFOLD_CACHE`, else the user's cache folder.
    """

    use: bool = True
    views: int | None = Field(default=None, ge=1)
    half: bool = False
    folder: str | None = None


class Recipe(Settings):
    """Everything about training but data, model and objective; the same keys as in a configuration file.

    Attributes:
        seed: of sampling, augmentation and dropout.
        batches: how batches are made.
        cache: how outputs of a frozen part are kept.
        train: the loop.
        optimizer: learning rates, weight decay, by group if need be.
        schedule: how learning rates move.
        stage: optimiser and schedule by stage, for objectives that have stages.
        allow_shared_classes: accept classes that are trained on and evaluated on as well; the scores are then no measure
            of unseen classes.

    Example:
        >>> recipe = Recipe(train={"epochs": 3}, optimizer={"learning_rate": 3e-4, "proxies": {"learning_rate": 1e-2}})
        >>> recipe.optimizer.groups["proxies"].learning_rate
        0.01
    """

    seed: int = 0
    batches: BatchSettings = BatchSettings()
    cache: CacheSettings = CacheSettings()
    train: LoopSettings = LoopSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    stage: dict[str, StageSettings] = Field(default_factory=dict)
    allow_shared_classes: bool = False

    @property
    def fit_settings(self) -> FitSettings:
        """What the engine needs of it."""
        return FitSettings(loop=self.train, optimizer=self.optimizer, schedule=self.schedule, stages=self.stage)
