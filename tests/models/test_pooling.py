"""Pooling."""

import pytest
import torch

from kinfold.models.pooling import POOLS, GeM


@pytest.fixture
def feature_map():
    return torch.rand(3, 5, 4, 2) + 0.1


def test_every_pool_is_what_plain_loops_say(feature_map):
    rows = feature_map.flatten(2).tolist()
    expected = {
        "avg": [[sum(c) / len(c) for c in row] for row in rows],
        "max": [[max(c) for c in row] for row in rows],
        "avg+max": [[sum(c) / len(c) + max(c) for c in row] for row in rows],
        "gem": [[(sum(v**3 for v in c) / len(c)) ** (1 / 3) for c in row] for row in rows],
    }
    assert expected.keys() == POOLS.keys()
    for name, value in expected.items():
        torch.testing.assert_close(POOLS[name]()(feature_map), torch.tensor(value), msg=name)


def test_gem_with_power_one_is_the_mean_and_with_a_large_power_nearly_the_maximum(feature_map):
    torch.testing.assert_close(GeM(p=1.0)(feature_map), feature_map.mean((2, 3)))
    torch.testing.assert_close(GeM(p=200.0)(feature_map), feature_map.amax((2, 3)), rtol=0.02, atol=0)


def test_gem_never_uses_a_power_below_one(feature_map):
    torch.testing.assert_close(GeM(p=-2.0)(feature_map), feature_map.mean((2, 3)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("value", [0.0, 1e-3, 6e4])
@pytest.mark.parametrize("p", [1.0, 3.0, 40.0])
def test_gem_and_its_gradients_are_finite_for_zeros_and_for_large_values(dtype, value, p):
    feature_map = torch.full((2, 3, 2, 2), value, dtype=dtype)
    feature_map[0, 0, 0, 0] = 0.0
    feature_map.requires_grad_()
    pool = GeM(p=p)
    output = pool(feature_map)
    output.float().sum().backward()
    assert output.dtype == dtype
    assert output.isfinite().all()
    assert feature_map.grad.isfinite().all()
    assert pool.p.grad.isfinite()


def test_gem_gradients_are_those_of_the_plain_formula(feature_map):
    x = feature_map.double().requires_grad_()
    y = feature_map.double().requires_grad_()
    pool, p = GeM(), torch.tensor(3.0, requires_grad=True)
    weight = torch.rand(3, 5)
    (pool(x) * weight).sum().backward()
    (y.pow(p).mean((2, 3)).pow(1 / p) * weight).sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(pool.p.grad, p.grad, rtol=1e-4, atol=1e-6)
