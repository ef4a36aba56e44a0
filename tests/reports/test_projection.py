"""Maps: principal components against numpy's own, t-SNE that keeps neighbours, equal results twice, clear errors."""

import sys

import numpy as np
import pytest

from kinfold.errors import ConfigError, DataError, MissingExtraError, ShapeError
from kinfold.reports import projection
from kinfold.reports.projection import perplexity_for, project, turned_to

RANDOM = np.random.default_rng(0)
CLASS = np.repeat(np.arange(4), 8)
CLUSTERS = RANDOM.normal(size=(4, 6))[CLASS] * 4 + RANDOM.normal(size=(32, 6)) * 0.3


def test_principal_components_are_those_of_the_singular_values():
    x = RANDOM.normal(size=(20, 5)) * [5, 1, 3, 0.5, 0.1]
    found = project(x, method="pca", normalised=False)
    centred = x - x.mean(axis=0)
    left, scale, _ = np.linalg.svd(centred, full_matrices=False)
    assert np.allclose(np.abs(found), np.abs(left[:, :2] * scale[:2]))


def test_lengths_do_not_count_when_rows_are_normalised():
    x = RANDOM.normal(size=(10, 4))
    stretched = x * RANDOM.uniform(0.1, 10, size=(10, 1))
    assert np.allclose(project(x, method="pca"), project(stretched, method="pca"))
    assert not np.allclose(project(x, method="pca", normalised=False), project(stretched, method="pca", normalised=False))


def test_a_map_is_equal_twice_and_keeps_classes_together():
    found = project(CLUSTERS, perplexity=5)
    assert np.array_equal(found, project(CLUSTERS, perplexity=5))
    assert np.allclose(found.mean(axis=0), 0, atol=1e-9)
    distance = np.linalg.norm(found[:, None] - found[None], axis=2) + np.diag([np.inf] * 32)
    assert (CLASS[distance.argmin(axis=1)] == CLASS).all()


def test_perplexity_is_lowered_for_few_rows():
    assert perplexity_for(32, 30.0) == 31 / 3
    assert perplexity_for(1000, 30.0) == 30.0
    assert project(CLUSTERS[:4]).shape == (4, 2)


def test_many_rows_without_the_extra_name_the_remedies(monkeypatch):
    monkeypatch.setattr(projection, "MAX_PLAIN", 20)
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    with pytest.raises(MissingExtraError, match=r"more than 20; or draw fewer, such as --max-images 20.*kinfold\[tsne\]"):
        project(CLUSTERS)


def test_many_rows_are_laid_out_by_the_extra(monkeypatch):
    pytest.importorskip("openTSNE", reason="the extra tsne is not installed")
    monkeypatch.setattr(projection, "MAX_PLAIN", 20)
    found = project(CLUSTERS, perplexity=5)
    assert np.array_equal(found, project(CLUSTERS, perplexity=5))
    distance = np.linalg.norm(found[:, None] - found[None], axis=2) + np.diag([np.inf] * 32)
    assert (CLASS[distance.argmin(axis=1)] == CLASS).all()


@pytest.mark.parametrize(
    ("embedding", "how", "error", "message"),
    [
        (np.zeros((2, 3)), {}, ShapeError, "at least 3 rows"),
        (np.array([[1.0, 0], [0, 0], [0, 1]]), {}, DataError, "row 1 is zero"),
        (np.array([[1.0, 0], [0, 1], [0, np.nan]]), {}, DataError, "the first in row 2"),
        (CLUSTERS, {"perplexity": 0.5}, ConfigError, "perplexity = 0.5"),
        (CLUSTERS, {"perplexity": float("nan")}, ConfigError, "perplexity = nan"),
        (CLUSTERS, {"method": "umap"}, ConfigError, "give `tsne` or `pca`"),
    ],
)
def test_what_cannot_be_laid_out_is_refused(embedding, how, error, message):
    with pytest.raises(error, match=message):
        project(embedding, **how)


def test_turning_finds_a_rotation_or_mirror_and_changes_no_distance():
    x = RANDOM.normal(size=(15, 2))
    x -= x.mean(axis=0)
    turn = np.array([[np.cos(2.0), -np.sin(2.0)], [np.sin(2.0), np.cos(2.0)]])
    for moved in (x @ turn + 5, (x * [1, -1]) @ turn):
        assert np.allclose(turned_to(moved, x), x)
    other = turned_to(x * [3, 1], x)
    assert np.allclose(np.linalg.norm(other[0] - other[1]), np.linalg.norm((x[0] - x[1]) * [3, 1]))
    with pytest.raises(ShapeError, match="same rows"):
        turned_to(x, x[1:])
