"""Principal components against scikit-learn, and where there are few images."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from kinfold.core.principal import principal_map
from kinfold.errors import ConfigError


@pytest.mark.parametrize("whiten", [False, True])
def test_the_map_is_that_of_scikit_learn_up_to_signs(whiten):
    x = torch.randn(60, 12) @ torch.randn(12, 12) + 3
    weight, mean = principal_map(x, 5, whiten=whiten)
    ours = ((x - mean) @ weight.T).numpy()
    theirs = PCA(5, whiten=whiten, svd_solver="full").fit_transform(x.double().numpy())
    if whiten:
        theirs *= np.sqrt(60 / 59)  # it divides by n − 1
    assert np.allclose(np.abs(ours), np.abs(theirs), atol=1e-3)


def test_signs_do_not_depend_on_the_order_of_the_images():
    x = torch.randn(40, 6)
    weight, _ = principal_map(x, 6)
    again, _ = principal_map(x[torch.randperm(40)], 6)
    assert torch.allclose(weight, again, atol=1e-4)
    assert bool((weight.gather(1, weight.abs().argmax(dim=1, keepdim=True)) > 0).all())


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("x", [torch.randn(3, 8), torch.ones(4, 8), torch.zeros(2, 8)], ids=["few", "equal", "zero"])
def test_more_components_than_images_stay_finite_and_orthogonal(x, whiten):
    weight, mean = principal_map(x, 8, whiten=whiten)
    assert bool(torch.isfinite(weight).all()) and torch.allclose(mean, x.mean(dim=0))
    unit = weight / weight.norm(dim=1, keepdim=True)
    assert torch.allclose(unit @ unit.T, torch.eye(8), atol=1e-4)


@pytest.mark.parametrize(("n", "dim"), [(5, 9), (5, 0), (1, 2)])
def test_what_cannot_be_had_is_refused(n, dim):
    with pytest.raises(ConfigError, match="principal components"):
        principal_map(torch.randn(n, 8), dim)
