from math import log

import pytest
import torch

from kinfold.evaluation.cluster_metrics import ami, cluster_codes, nmi


def entropy(counts):
    total = sum(counts)
    return -sum(c / total * log(c / total) for c in counts if c)


def test_nmi_uses_the_arithmetic_mean_of_the_entropies():
    label, cluster = torch.tensor([0, 0, 0, 1, 1, 2]), torch.tensor([0, 0, 1, 1, 1, 1])
    joint = entropy([2, 1, 2, 1])
    h_label, h_cluster = entropy([3, 2, 1]), entropy([2, 4])
    assert nmi(label, cluster) == pytest.approx((h_label + h_cluster - joint) / ((h_label + h_cluster) / 2))


def test_ami_is_one_for_the_classes_and_about_zero_for_chance():
    label = torch.arange(2000) % 10
    assert ami(label, 9 - label) == pytest.approx(1)
    assert abs(ami(label, torch.randint(200, (2000,)))) < 0.05 < nmi(label, torch.randint(200, (2000,)))


def test_k_means_finds_separate_classes_repeatably_and_on_unit_rows_only_if_told():
    label = torch.arange(60) % 3
    direction = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])[label]
    x = direction * torch.linspace(0.01, 100, 60)[:, None]
    assert nmi(label, cluster_codes(x, 3, normalised=True)) == pytest.approx(1)
    assert nmi(label, cluster_codes(x, 3, normalised=False)) < 0.9
    assert torch.equal(cluster_codes(x, 3, normalised=True, seed=3), cluster_codes(x, 3, normalised=True, seed=3))


def test_fewer_distinct_rows_than_clusters_is_scored_without_a_warning():
    assert nmi(torch.arange(10) % 5, cluster_codes(torch.ones(10, 3), 5, normalised=True)) == 0
