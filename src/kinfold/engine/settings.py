"""What can be set about optimisation and the loop."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from kinfold.errors import ConfigError, did_you_mean
from kinfold.settings import Settings

Beta = Annotated[float, Field(ge=0, lt=1)]
OptimizerKind = Literal["adamw", "adam", "sgd", "rmsprop"]
ScheduleKind = Literal["constant", "cosine", "step", "plateau", "one_cycle"]
PRECISIONS = {"fp32": "32-true", "fp16": "16-mixed", "bf16": "bf16-mixed"}
_LONG_PRECISIONS = set(PRECISIONS.values())


class ScheduleSettings(Settings):
    """How the learning rates move: every group's own rate is multiplied by one factor per step.

    Attributes:
        kind: `constant`; `cosine` (to `final_factor` at the last step); `step` (times `gamma` at each milestone);
            `plateau` (times `gamma` after `patience` evaluations without progress); `one_cycle` (cosine up from 1/25 over
            the first `rise` of the steps, cosine down to `final_factor`; only learning rates move, no momenta).
        warmup_epochs: linear rise from 0 over so many epochs, before any kind but `one_cycle`, which rises by itself.
        final_factor: the factor at the last step of `cosine` and `one_cycle`.
        restarts: epochs at which `cosine` begins again at its full height (Loshchilov and Hutter 2017), having come down before.
        rise: share of the steps that `one_cycle` rises, in (0, 1).
        milestones: epochs at which `step` drops.
        every_epochs: `step` drops every so many epochs (instead of milestones).
        gamma: factor of one drop, in (0, 1).
        patience: evaluations without progress before `plateau` drops.
    """

    kind: ScheduleKind = "constant"
    warmup_epochs: float = Field(default=0.0, ge=0)
    final_factor: float = Field(default=0.0, ge=0, le=1)
    restarts: tuple[Annotated[float, Field(gt=0)], ...] = ()
    rise: float = Field(default=0.3, gt=0, lt=1)
    milestones: tuple[float, ...] = ()
    every_epochs: float | None = Field(default=None, gt=0)
    gamma: float = Field(default=0.1, gt=0, lt=1)
    patience: int = Field(default=4, ge=0)

    @model_validator(mode="after")
    def _step_needs_its_places(self) -> "ScheduleSettings":
        if self.kind == "step" and not self.milestones and self.every_epochs is None:
            raise ConfigError("`kind` = 'step' needs `milestones` or `every_epochs`: say at which epochs the rate drops.")
        if self.kind == "one_cycle" and self.warmup_epochs:
            raise ConfigError("`warmup_epochs` does not go with `kind` = 'one_cycle', which rises by itself: set `rise`.")
        return self


class GroupSettings(Settings):
    """What a run sets for one named parameter group; `None` keeps the run's default.

    Attributes:
        kind: optimiser of this group.
        learning_rate: peak learning rate; overrides the group's own multiple of the run's.
        weight_decay: decoupled for AdamW, L2 for the others.
        eps: of `adamw`, `adam` and `rmsprop`.
        frozen_epochs: the group is not trained during the first so many epochs.
        schedule: a schedule of its own.
    """

    kind: OptimizerKind | None = None
    learning_rate: float | None = Field(default=None, ge=0)
    weight_decay: float | None = Field(default=None, ge=0)
    eps: float | None = Field(default=None, gt=0)
    frozen_epochs: int = Field(default=0, ge=0)
    schedule: ScheduleSettings | None = None


class OptimizerSettings(Settings):
    """Optimiser of the run and, by name, of its parameter groups (`trunk`, `head`, `proxies`, …).

    Attributes:
        kind: `adamw`, `adam`, `sgd` or `rmsprop`, as torch has them.
        learning_rate: peak learning rate; a group's `lr_scale` multiplies it.
        weight_decay: decoupled for AdamW, L2 for the others.
        momentum: of `sgd` and `rmsprop`, in [0, 1).
        betas: of `adamw` and `adam`.
        eps: of `adamw`, `adam` and `rmsprop`.
        groups: settings by group name; in a table, any key that holds a table is a group.
    """

    kind: OptimizerKind = "adamw"
    learning_rate: float = Field(default=1e-4, ge=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    momentum: float = Field(default=0.9, ge=0, lt=1)
    betas: tuple[Beta, Beta] = (0.9, 0.999)
    eps: float = Field(default=1e-8, gt=0)
    groups: dict[str, GroupSettings] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _tables_are_groups(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        inner = {
            key: value for key, value in values.items() if key not in cls.model_fields and isinstance(value, dict | GroupSettings)
        }
        rest = {key: value for key, value in values.items() if key not in inner}
        if inner and not isinstance(rest.get("groups", {}), dict):
            raise ConfigError(f"`groups` = {rest['groups']!r}: it holds one table per parameter group.")
        return {**rest, "groups": {**rest.get("groups", {}), **inner}} if inner else values

    def over(self, base: "OptimizerSettings") -> "OptimizerSettings":
        """Return `base` with what was written down here put over it, key by key.

        Example:
            >>> base = OptimizerSettings(kind="sgd", head={"learning_rate": 0.1})
            >>> stage = OptimizerSettings(learning_rate=1e-5, head={"weight_decay": 0.0}).over(base)
            >>> stage.kind, stage.learning_rate, stage.groups["head"].learning_rate
            ('sgd', 1e-05, 0.1)
        """
        own = {name: getattr(self, name) for name in self.model_fields_set if name != "groups"}
        groups = dict(base.groups)
        for name, group in self.groups.items():
            written = {key: getattr(group, key) for key in group.model_fields_set}
            groups[name] = groups.get(name, GroupSettings()).model_copy(update=written)
        return base.model_copy(update={**own, "groups": groups})


class StageSettings(Settings):
    """Optimiser and schedule of one stage of an objective.

    Attributes:
        optimizer: what is written here comes before the run's, key by key, also within a group; the rest stays as it is.
        schedule: `None` keeps the run's.
        epochs: length of the stage, for its schedule; `None` means to the end of the run.
    """

    optimizer: OptimizerSettings | None = None
    schedule: ScheduleSettings | None = None
    epochs: int | None = Field(default=None, ge=1)


class LoopSettings(Settings):
    """What can be set about the loop itself.

    Attributes:
        epochs: passes over the training set; 0 trains nothing, so that the model is measured as it starts.
        gradient_accumulation_steps: batches per update; the last window of an epoch may hold fewer and is averaged over those.
        clip_norm: largest norm of all gradients together; `None`: no limit.
        clip_value: largest absolute value of a gradient entry; `None`: no limit.
        precision: `32-true`, `16-mixed`, `bf16-mixed`, or short `fp32`, `fp16`, `bf16`; weights stay in float32.
        accelerator: `auto`, `cpu`, `cuda`, `mps`.
        frozen_batch_norm: keep the running statistics of batch normalisation as they are (their affine weights still train).
        monitor: the validation metric that chooses the best epoch, stops early and drives `plateau`.
        early_stopping_patience: evaluations without progress before training stops; `None`: never.
        evaluate_every: epochs between two evaluations.
        log_every: steps that one row of the log averages.
        checkpoint_steps: steps between two checkpoints inside an epoch; `None`: by time only.
        checkpoint_minutes: minutes between two checkpoints inside an epoch; each epoch's end has its own.
    """

    epochs: int = Field(default=10, ge=0)
    gradient_accumulation_steps: int = Field(default=1, ge=1)
    clip_norm: float | None = Field(default=None, gt=0)
    clip_value: float | None = Field(default=None, gt=0)
    precision: str = "32-true"
    accelerator: Literal["auto", "cpu", "cuda", "gpu", "mps"] = "auto"
    frozen_batch_norm: bool = False
    monitor: str = "recall_at_1"
    early_stopping_patience: int | None = Field(default=None, ge=1)
    evaluate_every: int = Field(default=1, ge=1)
    log_every: int = Field(default=10, ge=1)
    checkpoint_steps: int | None = Field(default=None, ge=1)
    checkpoint_minutes: float = Field(default=5.0, gt=0)

    @field_validator("precision")
    @classmethod
    def _long_name(cls, value: str) -> str:
        if value not in PRECISIONS and value not in _LONG_PRECISIONS:
            raise ConfigError(f"precision {value!r}: {did_you_mean(value, [*PRECISIONS, *_LONG_PRECISIONS])}")
        return PRECISIONS.get(value, value)


class FitSettings(Settings):
    """Everything that the engine needs to know.

    Attributes:
        loop: the loop.
        optimizer: the run's optimiser and its groups.
        schedule: the run's schedule.
        stages: by the name of an objective's stage.
    """

    loop: LoopSettings = LoopSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    stages: dict[str, StageSettings] = Field(default_factory=dict)

    def of_stage(self, name: str) -> tuple[OptimizerSettings, ScheduleSettings]:
        """Return optimiser and schedule of an objective's stage: its own where it has them, otherwise the run's."""
        stage = self.stages.get(name, StageSettings())
        optimizer = self.optimizer if stage.optimizer is None else stage.optimizer.over(self.optimizer)
        return optimizer, stage.schedule or self.schedule
