"""k-means and its steps against plain loops and scikit-learn, and what they do where clusters run empty."""

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from torch.nn.functional import normalize

from kinfold.core import clustering
from kinfold.core.clustering import assign, centres_of, in_space, kmeans, recentre, refill
from kinfold.errors import ConfigError

matrices = st.tuples(st.integers(1, 12), st.integers(1, 4), st.integers(1, 6), st.integers(0, 10**6))


def drawn(n, d, seed):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def spread(x, code, k):
    return sum(float(((x[code == j] - x[code == j].mean(dim=0)) ** 2).sum()) for j in range(k) if (code == j).any())


@given(matrices)
@settings(deadline=None, max_examples=60)
def test_assign_finds_the_smallest_distance(case):
    n, d, k, seed = case
    x, centre = drawn(n, d, seed), drawn(k, d, seed + 1)
    for row, code in zip(x.tolist(), assign(x, centre).tolist(), strict=True):
        distance = [math.dist(row, other) for other in centre.tolist()]
        assert distance[code] == pytest.approx(min(distance), abs=1e-9)


def test_assign_takes_the_first_of_equal_centres():
    centre = torch.tensor([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0]])
    assert assign(torch.tensor([[1.0, 2.0], [1.1, 2.2]]), centre).tolist() == [0, 0]


def test_assign_in_blocks_is_assign_at_once(monkeypatch):
    x, centre = drawn(50, 3, 0), drawn(7, 3, 1)
    whole = assign(x, centre)
    monkeypatch.setattr(clustering, "BLOCK", 20)
    assert torch.equal(assign(x, centre), whole)


@given(matrices)
@settings(deadline=None, max_examples=60)
def test_recentre_is_the_mean_of_the_members_and_keeps_empty_ones(case):
    n, d, k, seed = case
    x, centre = drawn(n, d, seed), drawn(k, d, seed + 1)
    code = torch.randint(k, (n,), generator=seeded(seed))
    found, turned = recentre(x, code, centre), recentre(x, code, centre, unit=True)
    for j in range(k):
        rows = [x[i] for i in range(n) if code[i] == j]
        mean = sum(rows) / len(rows) if rows else centre[j]
        torch.testing.assert_close(found[j], mean)
        torch.testing.assert_close(turned[j], normalize(mean, dim=0) if rows else centre[j])


def test_opposite_directions_have_no_mean_direction_and_keep_the_centre():
    x, centre = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    assert torch.equal(recentre(x, torch.tensor([0, 0]), centre, unit=True), centre)


@pytest.mark.parametrize("unit", [False, True])
def test_kmeans_finds_clusters_that_are_far_apart(unit):
    truth = torch.arange(60) % 4
    x = 10 * torch.eye(4)[truth] + 0.1 * torch.randn(60, 4, generator=seeded())
    if unit:
        x = x * (1 + 9 * torch.rand(60, 1, generator=seeded(1)))  # lengths say nothing
    code = kmeans(x, 4, generator=seeded(2), unit=unit)
    pairs = {(int(t), int(c)) for t, c in zip(truth, code, strict=True)}
    assert len(pairs) == 4


def test_raw_kmeans_sees_lengths_and_unit_kmeans_does_not():
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [10.0, 0.0], [0.0, 10.0]])
    assert kmeans(x, 2, generator=seeded(), unit=True)[[0, 2]].unique().numel() == 1
    raw = kmeans(x, 3, generator=seeded())
    assert raw[0] == raw[1], "the two short ones lie closest"


def test_kmeans_is_about_as_tight_as_scikit_learns():
    x = drawn(200, 5, 3)
    ours = spread(x, kmeans(x, 8, generator=seeded()), 8)
    theirs = KMeans(8, n_init=10, random_state=0).fit(x.numpy()).inertia_
    assert ours < 1.05 * theirs


def test_no_row_is_nearer_to_another_centre_when_kmeans_ends():
    x = drawn(80, 3, 4)
    code = kmeans(x, 5, generator=seeded())
    assert torch.equal(assign(x, recentre(x, code, torch.zeros(5, 3, dtype=x.dtype))), code)


@pytest.mark.parametrize("n_clusters", [1, 6])
def test_one_cluster_and_one_for_each_row(n_clusters):
    assert len(kmeans(drawn(6, 3, 0), n_clusters, generator=seeded()).unique()) == n_clusters


def test_fewer_distinct_rows_than_clusters_leave_clusters_empty():
    x = torch.tensor([[1.0], [1.0], [2.0], [2.0], [2.0]])
    code = kmeans(x, 4, generator=seeded())
    assert len(code.unique()) == 2
    assert code[0] == code[1] != code[2] == code[3]


def test_all_rows_equal_give_finite_centres():
    x = torch.ones(5, 3)
    code = kmeans(x, 3, generator=seeded())
    assert torch.equal(centres_of(x, code, 3), torch.ones(3, 3))


@pytest.mark.parametrize("n_clusters", [0, 5])
def test_no_cluster_and_more_clusters_than_rows_are_refused(n_clusters):
    with pytest.raises(ConfigError, match=f"{n_clusters} clusters of 4 vectors"):
        kmeans(drawn(4, 2, 0), n_clusters, generator=seeded())


def test_centres_of_empty_clusters_lie_on_the_farthest_rows():
    x = torch.tensor([[0.0], [1.0], [8.0]])
    assert centres_of(x, torch.tensor([0, 0, 0]), 2).flatten().tolist() == [3.0, 8.0]


def test_refill_splits_the_largest_cluster_in_two():
    x = torch.tensor([[0.0], [0.2], [9.0], [9.2], [50.0]])
    code, centre = torch.tensor([0, 0, 0, 0, 2]), torch.tensor([[4.6], [-70.0], [50.0]])
    found, moved = refill(x, code, centre)
    assert found[0] == found[1] != found[2] == found[3]
    assert sorted(found[:4].unique().tolist()) == [0, 1]
    assert sorted(moved.flatten().tolist()) == pytest.approx([0.1, 9.1, 50.0])
    assert code.tolist() == [0, 0, 0, 0, 2], "what was given stays"


def test_refill_leaves_full_clusters_and_copies_of_one_row_alone():
    full = torch.tensor([0, 1])
    assert refill(torch.tensor([[0.0], [1.0]]), full, torch.zeros(2, 1))[0] is full
    copies = torch.zeros(3, dtype=torch.long)
    assert refill(torch.ones(3, 1), copies, torch.ones(2, 1))[0] is copies


def test_in_space_has_no_graph_and_at_least_float32():
    x = torch.full((2, 3), 2.0, dtype=torch.float16, requires_grad=True)
    assert in_space(x, unit=False).dtype == torch.float32
    found = in_space(x, unit=True)
    assert not found.requires_grad
    torch.testing.assert_close(found.norm(dim=1), torch.ones(2))


def test_two_fresh_processes_find_the_same_clusters():
    program = (
        "import torch; from kinfold.core.clustering import kmeans; x = torch.randn(300, 16, generator=torch.Generator().manual_seed(5));"
        "print(kmeans(x, 20, generator=torch.Generator().manual_seed(1)).tolist())"
    )
    found = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert found[0] == found[1]
