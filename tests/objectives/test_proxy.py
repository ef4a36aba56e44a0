"""Proxy objectives: which column is whose, appended proxies, the start."""

import math

import pytest
import torch

from kinfold.errors import ConfigError
from kinfold.losses import normalized_softmax, proxy_anchor
from kinfold.objectives import Proxies
from kinfold.objectives.proxy import proxy_loss
from kinfold.records import Embedded


def test_softmax_over_proxies_is_torchs_cross_entropy():
    x, proxies, label = torch.randn(5, 4), torch.randn(3, 4), torch.tensor([0, 2, 1, 1, 0])
    cos = torch.nn.functional.normalize(x) @ torch.nn.functional.normalize(proxies).T
    expected = torch.nn.functional.cross_entropy(23.0 * cos, label)
    value = proxy_loss(lambda sim, pairs: normalized_softmax(sim, pairs, scale=23.0), x, label, proxies)
    torch.testing.assert_close(value, expected)


def test_extra_proxies_take_labels_that_count_on():
    objective = Proxies(proxy_anchor, 3, 4)
    x, label, extra = torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 4, 3]), torch.randn(2, 4)
    joined = proxy_loss(proxy_anchor, x, label, torch.cat([objective.proxies, extra]))
    assert torch.equal(objective.terms(x, label, extra_proxies=extra).total, joined)


def test_forward_is_terms_of_the_batch():
    objective = Proxies(proxy_anchor, 3, 4)
    x, label = torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    given = Embedded(x, x, label, torch.arange(6), torch.zeros(6, dtype=torch.long))
    assert torch.equal(objective(given).total, objective.terms(x, label).total)


def test_the_start_is_kaiming_fan_out_and_seeded():
    a, b, c = (Proxies(proxy_anchor, 500, 64, seed=seed).proxies for seed in (0, 0, 1))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert float(a.detach().std()) == pytest.approx(math.sqrt(2 / 500), rel=0.05)


def test_construction_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    Proxies(proxy_anchor, 10, 4)
    assert torch.equal(before, torch.get_rng_state())


def test_no_class_is_refused():
    with pytest.raises(ConfigError, match="n_classes = 0"):
        Proxies(proxy_anchor, 0, 4)
