"""What is wrong with parameter groups and their settings, before any gradient is computed."""

from torch import nn

from kinfold.checks.finding import Finding
from kinfold.checks.idle import idle
from kinfold.checks.wording import counted
from kinfold.engine.groups import build_groups
from kinfold.engine.settings import OptimizerSettings
from kinfold.errors import ConfigError, did_you_mean
from kinfold.models.embedder import Embedder
from kinfold.objectives.base import Objective
from kinfold.recipe import Recipe
from kinfold.records import ParamGroup


def group_findings(embedder: Embedder, objective: Objective, recipe: Recipe) -> list[Finding]:
    """Look at who trains what.

    Returns:
        `proxies_without_group` (error): parameters of the objective that no optimiser would hold. `bad_groups` (error): the same of
        the model, a parameter in two groups, two groups of one name. `unknown_group`, `unknown_stage` (error): settings for what is
        not there. `nothing_trains` (error): every group is frozen in the first epoch. `idle_setting` (warning). `frozen_group`
        (note): what was frozen on purpose.
    """
    left_out = names_without_group(objective)
    if left_out:
        message = f"{', '.join(f'`{name}`' for name in left_out)} of the objective are in no parameter group, so no optimiser trains them"
        remedy = f"return them from `{type(objective).__name__}.parameter_groups`, or set their requires_grad to False"
        return [Finding("proxies_without_group", "error", message, remedy)]
    try:
        groups = build_groups(embedder, objective)
    except ConfigError as error:
        return [Finding("bad_groups", "error", str(error), "mend `parameter_groups`: every parameter in exactly one named group")]
    names = [group.name for group in groups]
    findings = [*_frozen_on_purpose(embedder), *_stages(recipe, objective)]
    settings = {"optimizer": recipe.optimizer}
    settings |= {f"stage.{name}.optimizer": each.optimizer for name, each in recipe.stage.items() if each.optimizer is not None}
    for key, optimizer in settings.items():
        findings += [*_names(key, optimizer, names, embedder), *_overridden(key, optimizer, names)]
    return [*findings, *_first_epoch(recipe.optimizer, groups)]


def names_without_group(module: nn.Module) -> list[str]:
    """Return the trainable parameters of an objective that its `parameter_groups` leave out."""
    groups: list[ParamGroup] = module.parameter_groups() if isinstance(module, Objective) else []
    held = {id(p) for group in groups for p in group.params}
    return [name for name, p in module.named_parameters() if p.requires_grad and id(p) not in held]


def _frozen_on_purpose(embedder: Embedder) -> list[Finding]:
    if embedder.frozen is None:
        return []
    trunk = list(embedder.trunk.parameters())
    n_frozen = sum(p.numel() for p in trunk if not p.requires_grad)
    message = f"{n_frozen:,} of the trunk's {sum(p.numel() for p in trunk):,} weights do not train (`model.frozen` = {embedder.frozen!r})"
    return [Finding("frozen_group", "note", message, "nothing to do: that is what the setting is for")]


def _stages(recipe: Recipe, objective: Objective) -> list[Finding]:
    unknown = [name for name in recipe.stage if name not in objective.stages]
    return [
        Finding("unknown_stage", "error", f"`stage.{name}` is no stage of this objective", did_you_mean(name, objective.stages))
        for name in unknown
    ]


def _names(key: str, optimizer: OptimizerSettings, names: list[str], embedder: Embedder) -> list[Finding]:
    found = []
    for name in optimizer.groups:
        if name in names:
            continue
        if name in {group.name for group in embedder.parameter_groups()}:
            message = f"`{key}.{name}` is set, but no parameter of `{name}` trains"
            remedy = f"remove `{key}.{name}`, or unfreeze the group (`model.frozen`, requires_grad)"
        else:
            message, remedy = f"`{key}.{name}` is no parameter group of this model and objective", did_you_mean(name, names)
        found.append(Finding("unknown_group", "error", message, remedy))
    return found


def _overridden(key: str, optimizer: OptimizerSettings, names: list[str]) -> list[Finding]:
    """Find settings of the run that every group replaces by its own."""
    own = {
        field: "every parameter group has its own"
        for field in ("learning_rate", "weight_decay", "kind")
        if all(name in optimizer.groups and getattr(optimizer.groups[name], field) is not None for name in names)
    }
    return idle(optimizer, key, own) if names else []


def _first_epoch(optimizer: OptimizerSettings, groups: list[ParamGroup]) -> list[Finding]:
    """Find that everything is frozen at first: the run would stop there."""
    frozen = {
        group.name: optimizer.groups[group.name].frozen_epochs
        for group in groups
        if group.name in optimizer.groups and optimizer.groups[group.name].frozen_epochs
    }
    if not groups:
        message, remedy = (
            "nothing trains: no parameter of model and objective needs a gradient",
            "give the model a head (model.dim)",
        )
        return [Finding("nothing_trains", "error", message, f"{remedy}, or set train.epochs = 0 to measure it as it is")]
    if len(frozen) < len(groups):
        return []
    settings = ", ".join(f"`optimizer.{name}.frozen_epochs` = {n}" for name, n in frozen.items())
    message = f"nothing trains in the first epoch: {counted(len(groups), 'group')} and all frozen ({settings})"
    return [Finding("nothing_trains", "error", message, "set frozen_epochs = 0 for one of them, such as the head")]
