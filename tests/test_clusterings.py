"""Every way of clustering gives one code a row; anything with fit and predict is taken."""

import pytest
import torch
from sklearn.cluster import KMeans, MeanShift, SpectralClustering
from sklearn.mixture import GaussianMixture

from kinfold.clusterings import CLUSTERINGS, checked_codes, clustering_of
from kinfold.errors import ConfigError

TRUTH = torch.arange(40) % 4
X = 10 * torch.eye(4)[TRUTH] + 0.1 * torch.randn(40, 4, generator=torch.Generator().manual_seed(0))


class OnlyFitAndPredict:
    """The least that counts as an estimator."""

    def __init__(self, n_clusters=2):
        self.n_clusters = n_clusters

    def get_params(self, deep=True):
        return {"n_clusters": self.n_clusters}

    def set_params(self, **chosen):
        self.n_clusters = chosen["n_clusters"]
        return self

    def fit(self, x):
        self.centres = KMeans(self.n_clusters, random_state=0, n_init=3).fit(x)
        return self

    def predict(self, x):
        return self.centres.predict(x)


def are_the_same(code, truth):
    return len({(int(a), int(b)) for a, b in zip(code, truth, strict=True)}) == len(set(truth.tolist())) == len(code.unique())


@pytest.mark.parametrize(
    "clustering",
    [*CLUSTERINGS, KMeans(n_init=3), GaussianMixture(covariance_type="spherical"), SpectralClustering(), OnlyFitAndPredict()],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_clusters_that_are_far_apart_are_found_twice_alike(clustering):
    f = clustering_of(clustering)
    code = f(X, 4, seed=0)
    assert code.shape == (40,)
    assert code.dtype == torch.long
    assert are_the_same(code, TRUTH)
    assert torch.equal(code, f(X, 4, seed=0))


def test_an_estimator_is_copied_not_changed():
    given = KMeans(n_clusters=9)
    clustering_of(given)(X, 4, seed=0)
    assert given.n_clusters == 9
    assert given.random_state is None
    assert not hasattr(given, "cluster_centers_")


def test_a_function_is_taken_as_it_is():
    def by_sign(x, n_clusters, *, seed):
        return (x[:, 0] > 5).long()

    assert clustering_of(by_sign) is by_sign


@pytest.mark.parametrize(
    ("value", "message"),
    [("kmean", "did you mean `kmeans`"), (7, "clustering is a int"), (MeanShift(), "no parameter `n_clusters`")],
)
def test_what_cannot_cluster_is_refused(value, message):
    with pytest.raises(ConfigError, match=message):
        clustering_of(value)(X, 4, seed=0)


@pytest.mark.parametrize("code", [torch.zeros(3).long(), torch.full((40,), 4), torch.full((40,), -1), torch.zeros(40)])
def test_codes_that_are_none_are_refused(code):
    with pytest.raises(ConfigError, match="one cluster from 0 to 3 for each of 40 rows"):
        checked_codes(code, 40, 4)
