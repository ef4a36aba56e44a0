"""What becomes of the proxies: hits by a set of labels, angles by the arc cosine, only of groups named `proxies`."""

import math

import pytest
import torch
from torch import nn

from kinfold.engine.proxy_health import DRIFT_ROWS, ProxyHealth, mean_angle
from kinfold.losses import multi_similarity, proxy_anchor
from kinfold.objectives import Pairwise, Proxies
from kinfold.objectives.base import Objective
from kinfold.records import Losses, ParamGroup
from tests.engine.conftest import NoTrainSet


class Held(Objective):
    """Any objective with parameters in a group of any name."""

    def __init__(self, *params, name="proxies", n_classes=None):
        super().__init__()
        self.held, self.name, self.n_classes = nn.ParameterList(params), name, n_classes

    def forward(self, batch, phase="main"):
        return Losses({"x": batch.embedding.sum()})

    def parameter_groups(self):
        return [ParamGroup(self.name, list(self.held))]


def begun(objective) -> ProxyHealth:
    found = ProxyHealth(objective, NoTrainSet())
    found.begin_epoch()
    return found


def test_the_angle_is_the_arc_cosine():
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(20, 5, generator=generator) for _ in range(2))
    expected = sum(math.acos(float(torch.cosine_similarity(a.double(), b.double(), dim=0))) for a, b in zip(x, y, strict=True))
    assert mean_angle(x, y) == pytest.approx(expected / 20, rel=1e-5)
    assert mean_angle(x, -3 * x) == pytest.approx(math.pi, rel=1e-5)
    assert mean_angle(x, 2 * x) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("angle", [1e-5, 1e-4, 1e-3])
def test_small_angles_are_exact(angle):
    x = torch.tensor([[1.0, 0.0]])
    y = torch.tensor([[math.cos(angle), math.sin(angle)]])
    assert mean_angle(x, y) == pytest.approx(angle, rel=1e-2)


def test_hits_are_the_classes_of_all_batches_so_far():
    found = begun(Proxies(proxy_anchor, 6, 4))
    seen = set()
    for labels in ([0, 0, 3], [3, 5]):
        found.see(torch.tensor(labels))
        seen |= set(labels)
    assert found.never_hit == sorted(set(range(6)) - seen)
    assert found.end_epoch()["proxies_never_hit"] == 3
    found.begin_epoch()
    found.see(torch.tensor([1]))
    assert found.end_epoch()["proxies_never_hit"] == 2, "earlier epochs count"
    assert (found.n_epochs, found.n_proxies) == (2, 6)


def test_labels_of_no_proxy_do_not_raise():
    found = begun(Proxies(proxy_anchor, 3, 4))
    found.see(torch.tensor([-1, 3, 99, 1]))
    assert found.never_hit == [0, 2]


def test_drift_is_from_the_epochs_start():
    objective = Proxies(proxy_anchor, 6, 4)
    found = begun(objective)
    start = objective.proxies.detach().clone()
    with torch.no_grad():
        objective.proxies += 0.5
    assert found.end_epoch()["proxy_drift"] == pytest.approx(mean_angle(objective.proxies.detach(), start))
    assert found.end_epoch().get("proxy_drift") is None, "no epoch was begun"
    found.begin_epoch()
    assert found.end_epoch()["proxy_drift"] == 0.0


@pytest.mark.parametrize(
    "objective",
    [
        Pairwise(multi_similarity),
        Held(nn.Parameter(torch.ones(4, 3)), name="boundary"),
        Held(nn.Parameter(torch.ones(4))),
        Held(nn.Parameter(torch.ones(4, 3)), nn.Parameter(torch.ones(4, 3))),
        Held(nn.Parameter(torch.ones(0, 3))),
    ],
    ids=["none", "another name", "no matrix", "two", "empty"],
)
def test_what_is_no_matrix_of_proxies_is_left_alone(objective):
    found = begun(objective)
    found.see(torch.tensor([0, 1]))
    assert found.end_epoch() == {}
    assert found.never_hit == []


def test_the_training_set_says_the_number_of_classes_where_the_objective_does_not():
    assert begun(Held(nn.Parameter(torch.ones(NoTrainSet.n_classes, 3)))).n_proxies == NoTrainSet.n_classes
    several_a_class = begun(Held(nn.Parameter(torch.ones(3 * NoTrainSet.n_classes, 3))))
    assert set(several_a_class.end_epoch()) == {"proxy_drift"}, "which of them is whose is not known"
    assert begun(Held(nn.Parameter(torch.ones(7, 3)), n_classes=7)).n_proxies == 7


def test_resting_is_frozen_by_the_settings_not_by_the_caller():
    objective = Proxies(proxy_anchor, 3, 4)
    found, groups = begun(objective), objective.parameter_groups()
    assert not found.is_resting(groups)
    objective.proxies.requires_grad_(False)
    assert found.is_resting(groups)
    assert not found.is_resting([]), "no optimiser holds them: frozen for good"


def test_the_state_restores_hits_and_the_way_so_far():
    objective = Proxies(proxy_anchor, 4, 4)
    found = begun(objective)
    found.see(torch.tensor([2]))
    twin = ProxyHealth(objective, NoTrainSet())
    twin.load_state_dict(found.state_dict())
    with torch.no_grad():
        objective.proxies += 0.1
    assert twin.never_hit == [0, 1, 3]
    assert twin.end_epoch() == found.end_epoch()


def test_of_very_many_proxies_some_are_followed():
    objective = Proxies(proxy_anchor, 3 * DRIFT_ROWS - 1, 2)
    found = begun(objective)
    assert len(found.state_dict()["start"]) == DRIFT_ROWS
    with torch.no_grad():
        objective.proxies[::3] = torch.stack([-objective.proxies[::3, 1], objective.proxies[::3, 0]], dim=1)
    assert found.end_epoch()["proxy_drift"] == pytest.approx(math.pi / 2, rel=1e-4)
