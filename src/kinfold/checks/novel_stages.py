"""What is wrong with the stages of generated classes: the second never begins, the first is missing, or they are very many."""

from collections.abc import Mapping

from kinfold.checks.finding import Finding
from kinfold.models.embedder import Embedder
from kinfold.objectives.base import Objective
from kinfold.objectives.l2a_nc import NovelClasses
from kinfold.recipe import Recipe


def novel_stage_findings(objective: Objective, embedder: Embedder, recipe: Recipe) -> list[Finding]:
    """Hold the stages of `NovelClasses` against the run, and the numbers it holds against the model's.

    Args:
        objective: any; others have no generator.
        embedder: the model.
        recipe: the settings.

    Returns:
        `joint_never_begins` (warning): the run ends in pretraining, the model never meets a generated vector. `no_pretraining` (note): the
        model trains on vectors of a generator that has learned nothing. `joint_rate` (note): the joint stage begins again at the full
        learning rate. `many_novel_classes` (note): generator and novel proxies hold more numbers than the model.
    """
    if not isinstance(objective, NovelClasses) or objective.generator is None:
        return []
    found, epochs = [], recipe.train.epochs
    if epochs and objective.pretraining_epochs >= epochs:
        message = (
            f"`objective.pretraining_epochs` = {objective.pretraining_epochs} of `train.epochs` = {epochs}: the joint stage never begins, and the model "
            "learns nothing from generated classes"
        )
        remedy = f"lower objective.pretraining_epochs below {epochs}"
        found.append(Finding("joint_never_begins", "warning", message, remedy))
    elif objective.pretraining_epochs == 0:
        message = "`objective.pretraining_epochs` = 0: the model trains on generated vectors from the first step, when the generator has learned nothing"
        found.append(
            Finding(
                "no_pretraining", "note", message, "set objective.pretraining_epochs to half of the epochs or more, as the paper"
            )
        )
    elif "joint" not in recipe.stage and recipe.schedule.kind != "constant":
        message = "the joint stage begins again at the full learning rate, with fresh optimisers, and runs its schedule over the epochs that are left"
        found.append(
            Finding("joint_rate", "note", message, "set stage.joint.optimizer.learning_rate for another (the paper: half)")
        )
    n_own = sum(p.numel() for p in embedder.parameters() if p.requires_grad)
    n_added = sum(
        p.numel() for group in objective.parameter_groups() if group.name in ("generator", "novel_proxies") for p in group.params
    )
    if n_added > n_own:
        message = f"{objective.n_novel:,} generated classes hold {n_added:,} numbers that train, the model {n_own:,}"
        found.append(
            Finding(
                "many_novel_classes", "note", message, "set objective.max_novel or lower objective.novel_ratio to save memory"
            )
        )
    return found


def epochs_of_stages(objective: Objective, epochs: int) -> dict[str, int]:
    """Return the stages that a run goes through, from where the objective stands, with the epochs of each.

    Example:
        >>> from kinfold.losses import proxy_anchor
        >>> from kinfold.objectives.proxy import Proxies
        >>> objective = NovelClasses(Proxies(proxy_anchor, 4, 8), pretraining_epochs=3)
        >>> epochs_of_stages(objective, 5)
        {'pretraining': 3, 'joint': 2}
    """
    if not isinstance(objective, NovelClasses) or objective.stage == "joint" or objective.pretraining_epochs >= epochs:
        return {objective.stage: epochs}
    return {"pretraining": objective.pretraining_epochs, "joint": epochs - objective.pretraining_epochs}


def divergence_findings(objective: Objective, values: Mapping[str, float]) -> list[Finding]:
    """Find that nothing holds generated vectors near real ones: `idle_divergence` (warning).

    Args:
        objective: any; others have no divergence.
        values: the terms of the loss on the first batch.
    """
    if not isinstance(objective, NovelClasses) or not objective.divergence_weight or values.get("divergence") != 0.0:
        return []
    message = (
        "the divergence is exactly 0 on the first batch, so nothing holds generated vectors near real ones: gauss_kl and mmd need two vectors on "
        "each side, classwise_kl two of one class on each side"
    )
    remedy = "raise batches.batch_size or batches.images_per_class; lower objective.max_novel, so that generated classes come twice in a batch; or "
    return [Finding("idle_divergence", "warning", message, f"{remedy}take objective.divergence = 'gauss_kl'")]
