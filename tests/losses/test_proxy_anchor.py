"""Proxy Anchor with further columns: what the push is divided by."""

import pytest
import torch

from kinfold.core.pairs import pairs_from_labels
from kinfold.errors import ConfigError
from kinfold.losses import proxy_anchor


def test_the_push_is_divided_by_the_number_of_proxies_given():
    generator = torch.Generator().manual_seed(0)
    sim = torch.rand(8, 9, generator=generator, dtype=torch.float64) * 2 - 1
    pairs = pairs_from_labels(torch.arange(8) % 3, torch.arange(9))
    pull = proxy_anchor(sim, pairs, scale=4.0, n_proxies=10**12)
    push = 9 * (proxy_anchor(sim, pairs, scale=4.0) - pull)
    torch.testing.assert_close(proxy_anchor(sim, pairs, scale=4.0, n_proxies=3), pull + push / 3, rtol=1e-9, atol=1e-9)
    assert torch.equal(proxy_anchor(sim, pairs, scale=4.0, n_proxies=9), proxy_anchor(sim, pairs, scale=4.0))


def test_further_columns_then_push_real_proxies_as_hard_as_before():
    sim = torch.linspace(-1, 1, 24).reshape(8, 3).requires_grad_()
    label = torch.arange(8) % 3
    alone = torch.autograd.grad(proxy_anchor(sim, pairs_from_labels(label, torch.arange(3)), scale=4.0), sim)[0]
    wide = torch.cat([sim, torch.zeros(8, 6)], dim=1)
    pairs = pairs_from_labels(label, torch.arange(9))
    beside = torch.autograd.grad(proxy_anchor(wide, pairs, scale=4.0, n_proxies=3), sim)[0]
    torch.testing.assert_close(alone, beside)


def test_no_proxies_are_refused():
    with pytest.raises(ConfigError, match="`n_proxies` is 0.0: it must be larger"):
        proxy_anchor(torch.zeros(1, 1), pairs_from_labels(torch.tensor([0]), torch.tensor([0])), n_proxies=0)
