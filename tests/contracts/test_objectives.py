"""One contract over every objective: state is complete, every parameter is in a group, forward gives finite gradients."""

import json

import pytest
import torch

from kinfold.engine.groups import build_groups
from kinfold.losses import LOSSES, multi_similarity, proxy_anchor
from kinfold.objectives import (
    OBJECTIVES,
    EmbeddingExpansion,
    HierarchicalProxies,
    NovelClasses,
    Pairwise,
    Proxies,
    ProxySynthesis,
)
from kinfold.records import Embedded

N, DIM, N_CLASSES = 12, 6, 4
MAKE = {
    "embedding_expansion": lambda: EmbeddingExpansion(Pairwise(multi_similarity)),
    "hpl": lambda: HierarchicalProxies(Proxies(proxy_anchor, N_CLASSES, DIM), (2,)),
    "l2a_nc": lambda: NovelClasses(Proxies(proxy_anchor, N_CLASSES, DIM), pretraining_epochs=0),
    "pairwise": lambda: Pairwise(multi_similarity),
    "proxy": lambda: Proxies(proxy_anchor, N_CLASSES, DIM),
    "proxy_synthesis": lambda: ProxySynthesis(Proxies(proxy_anchor, N_CLASSES, DIM)),
}


def batch(label=None) -> Embedded:
    embedding = torch.randn(N, DIM, requires_grad=True)
    label = torch.arange(N) % N_CLASSES if label is None else label
    return Embedded(embedding, embedding * 2, label, torch.arange(N), torch.zeros(N, dtype=torch.long))


def test_every_objective_is_under_contract():
    assert set(MAKE) == set(OBJECTIVES)


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
class TestEveryObjective:
    def test_terms_are_finite_scalars_with_gradients(self, name):
        objective, given = MAKE[name](), batch()
        for phase in objective.phases:
            losses = objective(given, phase)
            losses.total.backward()
        assert losses.total.ndim == 0
        assert torch.isfinite(given.embedding.grad).all()
        assert given.embedding.grad.any()

    def test_every_parameter_is_in_a_group(self, name):
        objective = MAKE[name]()
        groups = build_groups(torch.nn.Linear(2, 2), objective)
        held = {id(p) for group in groups for p in group.params}
        assert {id(p) for p in objective.parameters()} <= held

    def test_state_restores_the_loss_exactly(self, name):
        objective, twin, given = MAKE[name](), MAKE[name](), batch()
        for p in objective.parameters():
            torch.nn.init.normal_(p)
        twin.load_state_dict(objective.state_dict())
        assert torch.equal(objective(given).total, twin(given).total)

    def test_its_description_is_plain_and_tells_settings_apart(self, name):
        described = MAKE[name]().describe()
        assert json.loads(json.dumps(described)) == described
        assert described == MAKE[name]().describe()

    def test_a_batch_of_one_class_is_finite(self, name):
        objective, given = MAKE[name](), batch(torch.zeros(N, dtype=torch.long))
        objective(given).total.backward()
        assert torch.isfinite(given.embedding.grad).all()

    def test_hooks_are_deterministic(self, name):
        objective, twin = MAKE[name](), MAKE[name]()
        for each in (objective, twin):
            each.on_epoch_start(0, None)
            each.on_step_end(1)
        assert all(torch.equal(a, b) for a, b in zip(objective.state_dict().values(), twin.state_dict().values(), strict=True))


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_any_loss_goes_with_any_objective(loss):
    given = batch()
    for objective in (Pairwise(LOSSES[loss]), Proxies(LOSSES[loss], N_CLASSES, DIM)):
        assert torch.isfinite(objective(given).total)
