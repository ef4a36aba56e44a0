"""Parameter groups: who is left out, what is set for nobody, what never trains."""

import pytest
import torch
from torch import nn

import kinfold
from kinfold.checks.frozen import frozen_findings
from kinfold.checks.groups import group_findings
from kinfold.engine.groups import build_groups
from kinfold.errors import ConfigError
from kinfold.records import ParamGroup
from tests.checks.tiny import WITHOUT_PROXIES, codes, embedder, pairwise, proxies, recipe, the


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


class Forgetful(kinfold.Objective):
    """Learns proxies and a temperature, and returns some of them."""

    def __init__(self, table, returned):
        super().__init__()
        self.inner, self.temperature, self.returned = proxies(table), nn.Parameter(torch.ones(())), returned

    def forward(self, batch, phase="main"):
        return self.inner(batch)

    def parameter_groups(self):
        own = {"proxies": self.inner.proxies, "temperature": self.temperature}
        return [ParamGroup(name, [own[name]]) for name in self.returned]


def test_a_healthy_recipe_has_no_finding(table):
    assert group_findings(embedder(), proxies(table), recipe()) == []
    assert frozen_findings(embedder(), proxies(table), recipe()) == []


def test_parameters_of_the_objective_in_no_group_are_named(table):
    objective = Forgetful(table, [])
    finding = the(group_findings(embedder(), objective, recipe()), "proxies_without_group")
    assert finding.severity == "error"
    assert "`inner.proxies`" in finding.message and "`temperature`" in finding.message
    assert "Forgetful.parameter_groups" in finding.remedy
    with pytest.raises(ConfigError):
        build_groups(embedder(), objective)
    one = the(group_findings(embedder(), Forgetful(table, ["proxies"]), recipe()), "proxies_without_group")
    assert "`temperature`" in one.message and "inner.proxies" not in one.message
    assert group_findings(embedder(), Forgetful(table, ["proxies", "temperature"]), recipe()) == []


def test_groups_that_share_a_parameter_are_an_error(table):
    assert codes(group_findings(embedder(), Forgetful(table, ["proxies", "temperature", "proxies"]), recipe())) == ["bad_groups"]


def test_settings_of_an_unknown_group_are_an_error_with_the_known_ones(table):
    finding = the(group_findings(embedder(), pairwise(), recipe()), "unknown_group")
    assert "`optimizer.proxies`" in finding.message and "head, trunk" in finding.remedy
    assert codes(group_findings(embedder(), proxies(table), recipe(optimizer={"hed": {"learning_rate": 1}}))) == ["unknown_group"]
    of_stage = recipe(stage={"main": {"optimizer": {"hed": {"learning_rate": 1}}}})
    assert "`stage.main.optimizer.hed`" in the(group_findings(embedder(), proxies(table), of_stage), "unknown_group").message


def test_settings_of_a_frozen_trunk_are_an_error_that_says_so(table):
    made = recipe(optimizer={"trunk": {"learning_rate": 1e-4}})
    finding = the(group_findings(embedder().freeze("trunk"), proxies(table), made), "unknown_group")
    assert "no parameter of `trunk` trains" in finding.message


def test_an_unknown_stage_is_an_error(table):
    assert codes(group_findings(embedder(), proxies(table), recipe(stage={"second": {"epochs": 1}}))) == ["unknown_stage"]


def test_a_part_frozen_on_purpose_is_a_note(table):
    whole = embedder().freeze("trunk")
    finding = the(group_findings(whole, proxies(table), recipe()), "frozen_group")
    assert finding.severity == "note" and "`model.frozen` = 'trunk'" in finding.message
    assert frozen_findings(whole, proxies(table), recipe()) == []
    assert frozen_findings(embedder().freeze("blocks.1"), proxies(table), recipe()) == []


def test_a_learning_rate_that_every_group_replaces_is_idle(table):
    groups = {"trunk": {"learning_rate": 1e-4}, "head": {"learning_rate": 1e-3}}
    assert codes(group_findings(embedder(), proxies(table), recipe(optimizer=groups))) == ["idle_setting"]
    without_head = {"trunk": {"learning_rate": 1e-4}}
    assert group_findings(embedder(), proxies(table), recipe(optimizer=without_head)) == []


def test_everything_frozen_at_first_is_an_error(table):
    groups = {"trunk": {"frozen_epochs": 1}, "head": {"frozen_epochs": 1}}
    assert group_findings(embedder(), proxies(table), recipe(optimizer=groups)) == [], "the proxies train"
    made = recipe(WITHOUT_PROXIES, optimizer=groups)
    finding = the(group_findings(embedder(), pairwise(), made), "nothing_trains")
    assert "`optimizer.head.frozen_epochs` = 1" in finding.message


def test_nothing_that_trains_is_an_error():
    bare = kinfold.Embedder("convnet", dim=None, size=24).freeze("trunk")
    assert codes(group_findings(bare, pairwise(), recipe(WITHOUT_PROXIES))) == ["nothing_trains"]


@pytest.mark.parametrize(
    "settings, told",
    [({"learning_rate": 0.0}, "`optimizer.{}.learning_rate` = 0"), ({"frozen_epochs": 2}, "`optimizer.{}.frozen_epochs` = 2")],
)
@pytest.mark.parametrize("group, code", [("head", "frozen_head"), ("trunk", "frozen_group"), ("proxies", "frozen_group")])
def test_a_group_that_its_settings_freeze_is_a_warning(table, settings, told, group, code):
    finding = the(frozen_findings(embedder(), proxies(table), recipe(optimizer={group: settings})), code)
    assert finding.severity == "warning" and told.format(group) in finding.message


def test_a_group_that_warms_up_is_healthy(table):
    assert frozen_findings(embedder(), proxies(table), recipe(optimizer={"trunk": {"frozen_epochs": 1}})) == []


def test_a_head_that_needs_no_gradient_is_an_error(table):
    model = embedder()
    model.head.requires_grad_(False)
    finding = the(frozen_findings(model, proxies(table), recipe()), "frozen_head")
    assert finding.severity == "error" and "random projection" in finding.message


def test_some_parameters_without_gradient_are_counted(table):
    model = embedder()
    model.trunk.module.blocks[0].requires_grad_(False)
    finding = the(frozen_findings(model, proxies(table), recipe()), "frozen_group")
    n = len(list(model.trunk.parameters()))
    assert finding.severity == "warning" and f"3 of {n} parameters of `trunk`" in finding.message


def test_no_learning_rate_at_all_freezes_every_group_that_has_no_own(table):
    found = frozen_findings(embedder(), proxies(table), recipe(optimizer={"learning_rate": 0.0}))
    assert codes(found) == ["frozen_group", "frozen_head"]
