"""Proxy Synthesis before any host: the sum in loops, its draws, its numbers, and what stays the base."""

import pytest
import torch

from kinfold.core.synthesis import mixed_classes, mixed_with_proxies
from kinfold.errors import ConfigError
from kinfold.losses import multi_similarity, normalized_softmax, proxy_anchor, proxy_nca
from kinfold.objectives import HierarchicalProxies, Pairwise, Proxies, ProxySynthesis
from kinfold.objectives.draws import Draws
from kinfold.records import Embedded
from tests import oracles

C, DIM = 5, 6
HOSTS = {"proxy_anchor": proxy_anchor, "proxy_nca": proxy_nca, "normalized_softmax": normalized_softmax}
ORACLES = {"proxy_anchor": oracles.proxy_anchor, "proxy_nca": oracles.proxy_nca, "normalized_softmax": oracles.normalized_softmax}


def batch(n=12, label=None, seed=0):
    x = torch.randn(n, DIM, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    label = torch.arange(n) % C if label is None else label
    return Embedded(x, x, label, torch.arange(n), torch.zeros(n, dtype=torch.long))


def first_share(seed=0, concentration=0.4):
    return float(Draws(seed).next()[0].beta(concentration, concentration))


def unit(x):
    return x / x.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("name", sorted(HOSTS))
@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
def test_the_loss_is_that_of_real_and_synthetic_rows_over_all_proxies(name, ratio):
    objective, given = ProxySynthesis(Proxies(HOSTS[name], C, DIM), ratio=ratio, seed=3), batch()
    n = round(ratio * 12)
    proxies = objective.base.proxies.detach()
    made = mixed_with_proxies(given.embedding.detach(), given.label, proxies, share=first_share(3), n=n)
    rows, columns = unit(torch.cat([given.embedding.detach(), made.embedding])), unit(torch.cat([proxies, made.proxies]))
    labels = [*given.label.tolist(), *range(C, C + n)]
    positive = [[label == column for column in range(C + n)] for label in labels]
    negative = [[not value for value in row] for row in positive]
    zero, one = ([[value] * (C + n) for _ in labels] for value in (0.0, 1.0))
    expected = ORACLES[name]((rows @ columns.T).tolist(), positive, negative, zero, one)
    assert float(objective(given).total.detach()) == pytest.approx(expected, rel=1e-5)


def test_over_pairs_synthetic_classes_are_further_rows():
    objective, given = ProxySynthesis(Pairwise(multi_similarity)), batch()
    made = mixed_classes(given.embedding.detach(), given.label, share=first_share(), n=12)
    label = torch.cat([given.label, made.code + C])
    rows = unit(torch.cat([given.embedding.detach(), made.embedding]))
    n = len(label)
    positive = [[i != j and bool(label[i] == label[j]) for j in range(n)] for i in range(n)]
    negative = [[bool(label[i] != label[j]) for j in range(n)] for i in range(n)]
    zero, one = ([[value] * n for _ in range(n)] for value in (0.0, 1.0))
    expected = oracles.multi_similarity((rows @ rows.T).tolist(), positive, negative, zero, one)
    assert float(objective(given).total.detach()) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("base", [Proxies(proxy_anchor, C, DIM), Pairwise(multi_similarity)])
def test_a_ratio_of_zero_is_the_base_bit_for_bit(base):
    assert torch.equal(ProxySynthesis(base, ratio=0)(batch()).total, base(batch()).total)


def test_every_step_draws_another_share_and_resuming_goes_on_with_them():
    before = torch.get_rng_state()
    objective, given = ProxySynthesis(Proxies(proxy_anchor, C, DIM)), batch()
    values = [float(objective(given).total.detach()) for _ in range(4)]
    assert len(set(values)) == 4
    twin = ProxySynthesis(Proxies(proxy_anchor, C, DIM))
    twin.load_state_dict(objective.state_dict())
    assert torch.equal(twin(given).total, objective(given).total)
    assert torch.equal(torch.get_rng_state(), before)


def test_gradients_reach_images_and_real_proxies():
    objective, given = ProxySynthesis(Proxies(proxy_anchor, C, DIM)), batch()
    objective(given).total.backward()
    assert given.embedding.grad.any(dim=1).all()
    assert objective.base.proxies.grad.any(dim=1).all()
    assert [group.name for group in objective.parameter_groups()] == ["proxies"]


def test_coarse_levels_see_real_rows_alone():
    host, given = HierarchicalProxies(Proxies(proxy_anchor, C, DIM), (2,)), batch()
    objective = ProxySynthesis(host)
    objective.on_epoch_start(0, None)
    torch.testing.assert_close(objective(given).terms["level_1"], host(given).terms["level_1"])
    assert objective.snapshot() == host.snapshot()
    before = host.levels[0].proxies.clone()
    with torch.no_grad():
        host.base.proxies.mul_(2.0)
    objective.on_step_end(100)
    assert not torch.equal(host.levels[0].proxies, before)


@pytest.mark.parametrize("n", [1, 3])
def test_batches_that_cannot_be_mixed_are_the_base(n):
    given = batch(n, torch.zeros(n, dtype=torch.long))
    for base in (Proxies(proxy_nca, C, DIM), Pairwise(multi_similarity)):
        torch.testing.assert_close(ProxySynthesis(base)(given).total, base(given).total)


def test_health_looks_and_changes_nothing():
    objective, given = ProxySynthesis(Proxies(proxy_anchor, C, DIM)), batch()
    state = {name: tensor.clone() for name, tensor in objective.state_dict().items()}
    found = objective.health(given)
    assert found == objective.health(given)
    assert all(torch.equal(state[name], tensor) for name, tensor in objective.state_dict().items())
    assert -1 <= found["novel_own_similarity_min"] <= found["novel_own_similarity"] <= 1
    assert -1 <= found["novel_real_similarity"] <= found["novel_real_similarity_max"] <= 1
    assert found["novel_real_similarity_max"] > 0.7  # a mixture of two is near to one of them
    assert "novel_own_similarity" not in ProxySynthesis(Pairwise(multi_similarity)).health(given)
    assert "novel_own_similarity" not in objective.health(batch(3, torch.zeros(3, dtype=torch.long)))


def test_numbers_out_of_range_are_refused():
    for changes in ({"ratio": -1.0}, {"concentration": 0.0}, {"ratio": float("nan")}):
        with pytest.raises(ConfigError, match="at least 0, and above 0"):
            ProxySynthesis(Proxies(proxy_anchor, C, DIM), **changes)
