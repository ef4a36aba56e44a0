"""`check_training`: what is wrong with a model, an objective and a recipe, before they are trained."""

import time
from dataclasses import replace

import torch

from kinfold.checks.coarse_levels import coarse_level_findings
from kinfold.checks.cost import Afterwards, Amounts, seconds_of_run, time_finding
from kinfold.checks.dry_step import DryStep, dry_step
from kinfold.checks.finding import Finding, in_order
from kinfold.checks.finite import not_finite
from kinfold.checks.frozen import frozen_findings
from kinfold.checks.gradients import gradient_findings
from kinfold.checks.groups import group_findings
from kinfold.checks.memory import StepMemory, largest, measured_memory
from kinfold.checks.novel_stages import divergence_findings, epochs_of_stages, novel_stage_findings
from kinfold.checks.precision import FULL, parity, precision_findings
from kinfold.checks.rehearsal import Rehearsal, rehearse
from kinfold.checks.sampling import sampling_findings
from kinfold.checks.settings import setting_findings
from kinfold.checks.sizes import disk_finding, memory_finding, sizes_of, weights_of
from kinfold.checks.speed import Loaded, load_some, measure_speed, over_stages, speed_findings
from kinfold.checks.suited import suited_findings
from kinfold.data.table import Table
from kinfold.engine.seeding import seeded_everything
from kinfold.errors import KinfoldError, TrainingError
from kinfold.models.embedder import Embedder
from kinfold.objectives.base import Objective
from kinfold.recipe import Recipe
from kinfold.records import Batch
from kinfold.training_batches import TrainingBatches, training_batches


def check_training(
    table: Table,
    embedder: Embedder,
    objective: Objective,
    recipe: Recipe | None = None,
    *,
    afterwards: Afterwards | None = None,
) -> list[Finding]:
    """Look at everything that `fit` would be given, and rehearse a few steps; nothing is changed, nothing is written.

    First the settings: those that do nothing, contradict each other, or would stop the run. If none is an error, a few real batches
    are loaded and trained on, with copies of model and objective, at the peak learning rates: does every group get a gradient and
    move; are pairs active; is everything finite; does the precision hold; is the data fast enough; what will the run take in time,
    memory and disk. An objective that goes through stages is rehearsed in each that the run reaches. It takes about ten seconds, or a few
    steps of a slow model.

    Args:
        table: images, classes and splits, as for `fit`.
        embedder: the model; weights, modes and gradients stay as they are, as do all random generators.
        objective: what is minimised; it stays as it is.
        recipe: the settings; `None`: those that `fit` takes by default.
        afterwards: what is measured once training has ended, for the estimates alone; `None`: nothing.

    Returns:
        What was found, errors first, then warnings, then notes; each names the setting to change.

    Example:
        >>> import numpy as np
        >>> from PIL import Image
        >>> from kinfold.data.datasets import table_from_dataset
        >>> from kinfold.losses import proxy_anchor
        >>> from kinfold.objectives import Proxies
        >>> noise = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
        >>> table = table_from_dataset([(Image.fromarray(pixels), number // 4) for number, pixels in enumerate(noise)])
        >>> recipe = Recipe(batches={"batch_size": 4, "images_per_class": 2}, optimizer={"head": {"learning_rate": 0.0}})
        >>> found = check_training(table, Embedder("convnet", 8), Proxies(proxy_anchor, 2, 8), recipe)
        >>> [finding.code for finding in found if finding.severity != "note"]
        ['frozen_head']
    """
    recipe = recipe or Recipe()
    with seeded_everything(recipe.seed):
        return in_order(_findings(table, embedder, objective, recipe, afterwards or Afterwards()))


def _findings(table: Table, embedder: Embedder, objective: Objective, recipe: Recipe, afterwards: Afterwards) -> list[Finding]:
    """Look at the settings, and rehearse if nothing speaks against it."""
    train, n_val = table.of_split("train"), len(table.split_rows("val"))
    found = suited_findings(table, embedder, objective, recipe)
    if train.n_classes < 2:
        return found
    found += setting_findings(recipe, n_val=n_val, frozen=embedder.frozen)
    found += [*group_findings(embedder, objective, recipe), *frozen_findings(embedder, objective, recipe)]
    try:
        batches = training_batches(train, embedder, recipe)
    except KinfoldError as error:
        return [*found, stopped(error, "batches"), _left_out()]
    found += sampling_findings(recipe, train, objective, batches.sampler)
    found += coarse_level_findings(objective, recipe, n_batches=len(batches))
    found += novel_stage_findings(objective, embedder, recipe)
    if not recipe.train.epochs:
        return found
    if any(finding.severity == "error" for finding in found):
        return [*found, _left_out()]
    amounts = Amounts(len(batches), len(train), n_val, afterwards=afterwards)
    return [*found, *_rehearsal_findings(train, embedder, objective, recipe, batches, amounts)]


def _rehearsal_findings(
    train: Table, embedder: Embedder, objective: Objective, recipe: Recipe, batches: TrainingBatches, amounts: Amounts
) -> list[Finding]:
    try:
        loaded = load_some(batches.epoch(0), workers=recipe.batches.workers)
        batches.close()  # workers that read ahead would slow down what is measured next
        rehearsal = rehearse(train, embedder, objective, recipe, n_batches=len(batches))
        return _rehearsed(rehearsal, loaded, recipe, replace(amounts, embeds_train_set=rehearsal.embeds_train_set))
    except KinfoldError as error:
        return [stopped(error, "training")]
    except torch.OutOfMemoryError as error:
        message = f"one step does not fit into the memory of the accelerator: {error}"
        return [Finding("out_of_memory", "error", message, "lower batches.batch_size, or data.size")]
    finally:
        batches.close()


def stopped(error: KinfoldError, what: str) -> Finding:
    """Return an error of the library, which says itself what to do, as a finding."""
    return Finding(f"cannot_start_{what}", "error", str(error), "the run would stop there: do as the message says")


def _left_out() -> Finding:
    message = "the rehearsal (gradients, precision, speed, cost) was left out because of the errors"
    return Finding("rehearsal_left_out", "note", message, "mend them and check again")


def _rehearsed(rehearsal: Rehearsal, loaded: Loaded, recipe: Recipe, amounts: Amounts) -> list[Finding]:
    """Train a few steps and judge them."""
    precision = recipe.train.precision
    batch = rehearsal.fed(loaded.batches[0])
    found = []
    if precision != FULL:
        found += precision_findings(parity(rehearsal, batch, precision), precision)
    epochs = epochs_of_stages(rehearsal.objective, recipe.train.epochs)
    speeds, memories = {}, []
    try:
        for stage in epochs:
            if stage != rehearsal.objective.stage:
                rehearsal.enter(epochs[rehearsal.objective.stage])
            step, memory, seconds = _first_step(rehearsal, batch)
            found += _said_of(stage, _step_findings(rehearsal, step), found if speeds else [])
            speeds[stage] = measure_speed(rehearsal, loaded, precision=precision, first_step=seconds)
            memories.append(memory)
    except TrainingError:
        return [*found, not_finite(rehearsal, batch, n_steps=rehearsal.session.progress.step)]
    speed, memory = over_stages(speeds, epochs), largest(memories)
    sizes = sizes_of(rehearsal, recipe, memory, image=loaded.batches[0].image, fed=batch.image)
    parts = seconds_of_run(speed, recipe, amounts)
    return [
        *found,
        *speed_findings(speed, recipe, n_batches=amounts.n_batches),
        time_finding(parts, recipe, amounts, speed),
        memory_finding(sizes, memory, amounts.afterwards),
        disk_finding(sizes, recipe, amounts),
    ]


def _step_findings(rehearsal: Rehearsal, step: DryStep) -> list[Finding]:
    return [*gradient_findings(step), *divergence_findings(rehearsal.objective, step.values)]


def _said_of(stage: str, findings: list[Finding], known: list[Finding]) -> list[Finding]:
    """Return what a stage after the first adds to what is known, with its name; what the first one says as it is."""
    if not known:
        return findings
    return [replace(each, message=f"{stage} stage: {each.message}") for each in findings if each not in known]


def _first_step(rehearsal: Rehearsal, batch: Batch) -> tuple[DryStep, StepMemory, float]:
    weights = weights_of(rehearsal.embedder, rehearsal.objective)
    begin = time.perf_counter()
    with measured_memory(rehearsal.device, weights) as memory:
        step = dry_step(rehearsal, batch)
    return step, memory, time.perf_counter() - begin
