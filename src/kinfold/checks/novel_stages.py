"""What is wrong with the stages of generated classes: the second never begins, the first is missing, or they are very many."""

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
