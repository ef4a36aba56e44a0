"""Parameter groups that will never train because a setting, or `requires_grad`, says so."""

from collections.abc import Iterator

from torch import nn

from kinfold.checks.finding import Finding, Severity
from kinfold.engine.settings import GroupSettings, OptimizerSettings
from kinfold.models.embedder import Embedder
from kinfold.objectives.base import Objective
from kinfold.recipe import Recipe
from kinfold.records import ParamGroup

HEAD = "head"


def frozen_findings(embedder: Embedder, objective: Objective, recipe: Recipe) -> list[Finding]:
    """Look for groups that never train although nobody said that they are frozen (`model.frozen`).

    Returns:
        `frozen_head`: an error where its weights do not need a gradient, a warning where the recipe's numbers freeze it.
        `frozen_group` (warning): the same of any other group.
    """
    found = []
    on_purpose = frozen_on_purpose(embedder)
    optimizer = optimizer_of(recipe, objective)
    for group in [*embedder.parameter_groups(), *objective.parameter_groups()]:
        idle = [p for p in group.params if not p.requires_grad and id(p) not in on_purpose]
        n_trainable = sum(p.requires_grad for p in group.params)
        if idle:
            all_of = "no parameter" if not n_trainable else f"{len(idle):,} of {len(group.params):,} parameters"
            verb = "needs a gradient" if not n_trainable else "need no gradient"
            found.append(
                frozen(group.name, f"{all_of} of `{group.name}` {verb} (requires_grad)", "set requires_grad to True", "error")
            )
        for reason, remedy in _by_settings(group, optimizer, recipe.train.epochs) if n_trainable else ():
            found.append(frozen(group.name, reason, remedy, "warning"))
    return found


def frozen(name: str, reason: str, remedy: str, head_severity: Severity) -> Finding:
    """Return the finding that a group does not train; that a head does not is worse, its weights being random."""
    if name != HEAD:
        return Finding("frozen_group", "warning", f"{reason}: `{name}` does not train", remedy)
    message = f"{reason}: the head does not train, embeddings stay a random projection of the features"
    return Finding("frozen_head", head_severity, message, remedy)


def frozen_on_purpose(embedder: Embedder) -> set[int]:
    """Return the identities of the parameters that `Embedder.freeze` froze."""
    names = embedder.frozen_names()
    parameters: Iterator[tuple[str, nn.Parameter]] = embedder.named_parameters()
    return {id(parameter) for name, parameter in parameters if name in names}


def optimizer_of(recipe: Recipe, objective: Objective) -> OptimizerSettings:
    """Return the optimiser settings of the objective's present stage."""
    return recipe.fit_settings.of_stage(objective.stage)[0]


def _by_settings(group: ParamGroup, optimizer: OptimizerSettings, epochs: int) -> Iterator[tuple[str, str]]:
    own, key = optimizer.groups.get(group.name, GroupSettings()), f"optimizer.{group.name}"
    if own.learning_rate == 0:
        yield f"`{key}.learning_rate` = 0", f"set {key}.learning_rate above 0"
    elif own.learning_rate is None and group.learning_rate is None and optimizer.learning_rate == 0:
        yield "`optimizer.learning_rate` = 0", "set optimizer.learning_rate above 0"
    if own.frozen_epochs >= epochs > 0:
        message = f"`{key}.frozen_epochs` = {own.frozen_epochs} of `train.epochs` = {epochs}"
        yield message, f"lower {key}.frozen_epochs below train.epochs"
