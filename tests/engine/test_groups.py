"""Parameter groups: complete, apart, by name."""

import pytest
import torch
from torch import nn

from kinfold.engine.groups import build_groups
from kinfold.engine.optimizers import Optimizers, Span
from kinfold.engine.settings import FitSettings, OptimizerSettings, ScheduleSettings
from kinfold.errors import ConfigError
from kinfold.records import ParamGroup


class Parts(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
        self.groups = groups

    def parameter_groups(self):
        return self.groups(self)


def both(module):
    return [ParamGroup("trunk", list(module.a.parameters())), ParamGroup("head", list(module.b.parameters()), lr_scale=10.0)]


def test_every_left_out_parameter_is_named():
    with pytest.raises(ConfigError, match=r"`b.weight`, `b.bias` are in no parameter group"):
        build_groups(Parts(lambda m: both(m)[:1]), nn.Identity())


def test_a_parameter_that_does_not_train_may_be_left_out():
    module = Parts(lambda m: both(m)[:1])
    module.b.requires_grad_(False)
    assert [group.name for group in build_groups(module, nn.Identity())] == ["trunk"]


def test_a_parameter_in_two_groups_is_refused():
    with pytest.raises(ConfigError, match="groups `trunk` and `again`"):
        build_groups(Parts(lambda m: [*both(m), ParamGroup("again", [m.a.weight])]), nn.Identity())


def test_two_groups_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two parameter groups are named `trunk`"):
        build_groups(Parts(both), Parts(both))


def test_modules_without_groups_are_one_group_each():
    groups = build_groups(nn.Linear(2, 2), nn.Linear(2, 2))
    assert [group.name for group in groups] == ["model", "objective"]


def optimizers(**settings) -> Optimizers:
    groups = build_groups(Parts(both), nn.Identity())
    return Optimizers(groups, OptimizerSettings(**settings), ScheduleSettings(), Span(10, 10))


def test_rates_scale_with_the_run_unless_the_group_sets_its_own():
    assert optimizers(learning_rate=0.1).set_rates(0) == {"trunk": 0.1, "head": 1.0}
    assert optimizers(learning_rate=0.1, head={"learning_rate": 0.5}).set_rates(0) == {"trunk": 0.1, "head": 0.5}


def test_one_torch_optimiser_per_kind():
    made = optimizers(kind="adamw", head={"kind": "sgd", "weight_decay": 0.0})
    assert [type(each).__name__ for each in made.torch_optimizers] == ["AdamW", "SGD"]
    assert made.torch_optimizers[1].param_groups[0]["weight_decay"] == 0.0
    assert made.torch_optimizers[0].param_groups[0]["weight_decay"] == 1e-4


def test_a_schedule_of_its_own_moves_one_group_only():
    made = optimizers(learning_rate=1.0, head={"schedule": {"kind": "cosine"}, "learning_rate": 1.0})
    assert made.set_rates(9) == {"trunk": 1.0, "head": pytest.approx(0.0)}


def test_state_goes_through_a_checkpoint():
    made = optimizers(kind="adam")
    for p in made.parameters:
        p.grad = torch.ones_like(p)
    made.step()
    twin = optimizers(kind="adam")
    twin.load_state_dict(made.state_dict())
    state = twin.torch_optimizers[0].state_dict()["state"]
    assert all(
        torch.equal(entry["exp_avg"], made.torch_optimizers[0].state_dict()["state"][i]["exp_avg"]) for i, entry in state.items()
    )


def made_by(group, **settings):
    optimizers = Optimizers([group], OptimizerSettings(**settings), ScheduleSettings(), Span(10, 10))
    (made,) = optimizers.torch_optimizers
    return made, made.param_groups[0]


def test_an_objective_may_give_a_group_an_optimiser_of_its_own():
    own = ParamGroup("generator", [nn.Parameter(torch.zeros(2))], kind="adamw", learning_rate=1e-4, weight_decay=0.5, eps=1e-8)
    made, entry = made_by(own, kind="sgd", learning_rate=0.1)
    assert isinstance(made, torch.optim.AdamW)
    assert (entry["lr"], entry["weight_decay"], entry["eps"]) == (1e-4, 0.5, 1e-8)
    of_adam = made_by(own, kind="adam", learning_rate=0.1, eps=0.01)[1]
    assert (of_adam["lr"], of_adam["eps"]) == (1e-4, 1e-8)
    plain = ParamGroup("head", [nn.Parameter(torch.zeros(2))])
    assert made_by(plain, kind="adam", eps=0.01)[1]["eps"] == 0.01


def test_a_run_may_set_every_one_of_these_otherwise():
    own = ParamGroup("generator", [nn.Parameter(torch.zeros(2))], kind="adamw", learning_rate=1e-4, eps=1e-8)
    written = {"kind": "rmsprop", "learning_rate": 0.5, "weight_decay": 0.25, "eps": 0.125}
    made, entry = made_by(own, generator=written)
    assert isinstance(made, torch.optim.RMSprop)
    assert (entry["lr"], entry["weight_decay"], entry["eps"]) == (0.5, 0.25, 0.125)


def test_a_stage_changes_what_it_names_and_keeps_the_rest():
    settings = FitSettings(
        optimizer={"kind": "adam", "eps": 0.01, "weight_decay": 0.5, "proxies": {"learning_rate": 1.0, "frozen_epochs": 2}},
        schedule={"kind": "cosine"},
        stages={"joint": {"optimizer": {"learning_rate": 5e-5, "proxies": {"learning_rate": 0.5}, "generator": {"kind": "sgd"}}}},
    )
    optimizer, schedule = settings.of_stage("joint")
    assert (optimizer.kind, optimizer.eps, optimizer.weight_decay, optimizer.learning_rate) == ("adam", 0.01, 0.5, 5e-5)
    assert (optimizer.groups["proxies"].learning_rate, optimizer.groups["proxies"].frozen_epochs) == (0.5, 2)
    assert optimizer.groups["generator"].kind == "sgd"
    assert schedule.kind == "cosine"
    assert settings.of_stage("pretraining") == (settings.optimizer, settings.schedule)
