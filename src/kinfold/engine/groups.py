"""Every parameter in exactly one named group, or an error that names it."""

from collections.abc import Iterable
from dataclasses import replace

from torch import nn

from kinfold.engine.settings import OptimizerSettings
from kinfold.errors import ConfigError, did_you_mean
from kinfold.records import ParamGroup


def build_groups(model: nn.Module, objective: nn.Module) -> list[ParamGroup]:
    """Collect the groups of model and objective, without parameters that do not train.

    A module without `parameter_groups` gives one group: `model` or `objective`.

    Raises:
        ConfigError: a trainable parameter is in no group or in two (the commonest silent fault of proxy code), or two
            groups share a name.
    """
    groups: list[ParamGroup] = []
    for name, module in (("model", model), ("objective", objective)):
        own = _groups_of(module, name)
        _check_complete(module, own, name)
        groups += own
    _check_apart(groups)
    trainable = [replace(group, params=[p for p in group.params if p.requires_grad]) for group in groups]
    return [group for group in trainable if group.params]


def check_names(settings: OptimizerSettings, groups: Iterable[ParamGroup]) -> None:
    """Refuse settings for a group that does not exist."""
    known = [group.name for group in groups]
    for name in settings.groups:
        if name not in known:
            raise ConfigError(
                f"`optimizer.{name}` is no parameter group of this model and objective: {did_you_mean(name, known)}"
            )


def _groups_of(module: nn.Module, name: str) -> list[ParamGroup]:
    ask = getattr(module, "parameter_groups", None)
    return list(ask()) if ask else [ParamGroup(name, list(module.parameters()))]


def _check_complete(module: nn.Module, groups: list[ParamGroup], owner: str) -> None:
    held = {id(p) for group in groups for p in group.params}
    left_out = [name for name, p in module.named_parameters() if p.requires_grad and id(p) not in held]
    if left_out:
        raise ConfigError(
            f"the {owner}'s parameters {', '.join(f'`{name}`' for name in left_out)} are in no parameter group, so no optimiser "
            f"would train them: return them from `{type(module).__name__}.parameter_groups`, or set requires_grad to False."
        )


def _check_apart(groups: list[ParamGroup]) -> None:
    owner: dict[int, str] = {}
    names: set[str] = set()
    for group in groups:
        if group.name in names:
            raise ConfigError(
                f"two parameter groups are named `{group.name}`: names must differ, the configuration goes by them."
            )
        names.add(group.name)
        for p in group.params:
            if id(p) in owner:
                raise ConfigError(
                    f"one parameter is in the groups `{owner[id(p)]}` and `{group.name}`: it would be trained twice."
                )
            owner[id(p)] = group.name
