"""A rehearsal: copies of model and objective, set up to train just as `fit` would, at the peak learning rates."""

from copy import deepcopy
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from kinfold.data.table import Table
from kinfold.engine.modes import set_training_mode
from kinfold.engine.progress import Progress
from kinfold.engine.session import Session
from kinfold.engine.settings import FitSettings, OptimizerSettings, ScheduleSettings, StageSettings
from kinfold.engine.train_set import EpochTrainSet
from kinfold.measure import embed_table
from kinfold.models.embedder import Embedder
from kinfold.models.frozen import Front, Rest
from kinfold.modes import evaluating
from kinfold.objectives.base import Objective
from kinfold.recipe import Recipe
from kinfold.records import Batch, Embedded
from kinfold.training_batches import trains_on_values


@dataclass
class Rehearsal:
    """What is needed to train a few steps without touching anything of the caller's.

    Attributes:
        embedder: a copy of the model.
        objective: a copy of the objective.
        model: the copy as `fit` trains it: itself, or what is behind its frozen part.
        front: the frozen part, where training reads its kept outputs; else `None`.
        session: the optimisers on the device, in the precision asked for.
        recipe: the settings.
        train_set: for objectives that ask for the embeddings of all training images; remembers that they did.
    """

    embedder: Embedder
    objective: Objective
    model: nn.Module
    front: Front | None
    session: Session
    recipe: Recipe
    train_set: "_TrainSet"

    def enter(self, epoch: int) -> None:
        """Begin an epoch as training does, in the stage that the objective has then; all trains that does in the last epoch."""
        self.objective.on_epoch_start(epoch, EpochTrainSet(self.train_set))
        self.session.follow_stage()
        self.session.optimizers.freeze(max(0, self.recipe.train.epochs - 1))
        set_training_mode(self.session.model, frozen_batch_norm=self.recipe.train.frozen_batch_norm)
        self.objective.train()

    def fed(self, batch: Batch) -> Batch:
        """Return a batch of images as training gets it: on the device, as the frozen part's outputs where those are kept."""
        image = self.session.fabric.to_device(batch.image)
        if self.front is None:
            return replace(batch, image=image)
        with torch.no_grad(), evaluating(self.front):
            return replace(batch, image=self.front(image))

    def step(self, batch: Batch) -> dict[str, float]:
        """Make one update with a batch from `fed`."""
        values = self.session.update([batch])
        self.objective.on_step_end(self.session.progress.step)
        return values

    @property
    def embeds_train_set(self) -> bool:
        """Whether the objective asked for the whole training set's embeddings, as it will each epoch."""
        return self.train_set.is_asked

    @property
    def device(self) -> torch.device:
        """Where the session computes."""
        return self.session.fabric.device


def rehearse(train: Table, embedder: Embedder, objective: Objective, recipe: Recipe, *, n_batches: int) -> Rehearsal:
    """Copy model and objective and begin the first epoch, with all that ever trains training; `Rehearsal.enter` goes on to a later stage.

    Args:
        train: the training images, for objectives that ask for their embeddings.
        embedder: the model; not touched.
        objective: what is minimised; not touched.
        recipe: the settings.
        n_batches: batches of an epoch.

    Raises:
        ConfigError: the settings do not go with this machine, model or objective.
    """
    model_copy, objective_copy = deepcopy((embedder, objective))  # together: they may share parameters
    from_values = trains_on_values(model_copy, recipe)
    model = Rest(model_copy, from_values=from_values) if model_copy.frozen else model_copy
    session = Session(model, objective_copy, at_peak(recipe.fit_settings), n_batches, Progress())
    front = Front(model_copy, model_copy.frozen) if from_values and model_copy.frozen else None
    train_set = _TrainSet(train, model_copy, recipe)
    rehearsal = Rehearsal(model_copy, objective_copy, model, front, session, recipe, train_set)
    rehearsal.enter(0)
    return rehearsal


def at_peak(settings: FitSettings) -> FitSettings:
    """Return the settings with constant schedules: every step is taken at the peak learning rate.

    Example:
        >>> at_peak(FitSettings(schedule={"kind": "one_cycle"})).schedule.kind
        'constant'
    """
    stages = {
        name: StageSettings(optimizer=None if stage.optimizer is None else _unscheduled(stage.optimizer), epochs=stage.epochs)
        for name, stage in settings.stages.items()
    }
    return FitSettings(loop=settings.loop, optimizer=_unscheduled(settings.optimizer), schedule=ScheduleSettings(), stages=stages)


def _unscheduled(optimizer: OptimizerSettings) -> OptimizerSettings:
    groups = {name: group.model_copy(update={"schedule": None}) for name, group in optimizer.groups.items()}
    return optimizer.model_copy(update={"groups": groups})


@dataclass
class _TrainSet:
    """The training set for an objective that asks for it; remembers that it did."""

    train: Table
    embedder: Embedder
    recipe: Recipe
    is_asked: bool = field(init=False, default=False)

    @property
    def n_classes(self) -> int:
        return self.train.n_classes

    def embed(self, view: int = 0) -> Embedded:
        del view  # the rehearsal has one
        self.is_asked = True
        how = {"workers": self.recipe.batches.workers, "precision": self.recipe.train.precision}
        return embed_table(self.embedder, self.train, broken={}, **how)
