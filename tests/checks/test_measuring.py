"""How a configuration measures: names, cut-offs, splits."""

import pytest

from kinfold.checks.measuring import measuring_findings, n_measured, n_to_find
from kinfold.config import Config
from kinfold.data.read import read_table
from tests.checks.tiny import codes, the


def config(objective=None, **evaluation):
    return Config(run="runs/x", data={"root": "."}, objective=objective or {}, evaluation=evaluation)


@pytest.fixture
def table(tiny_photos):
    return read_table(tiny_photos)


def test_the_defaults_are_healthy(table):
    assert measuring_findings(config(), table) == []


@pytest.mark.parametrize(
    "evaluation",
    [{"metrics": ["recal_at_1"]}, {"coarse_metrics": ["recal"]}, {"similarity": "cosin"}, {"memory": "a lot"}, {"ks": [0]}],
)
def test_an_unknown_name_is_an_error(table, evaluation):
    finding = the(measuring_findings(config(**evaluation), table), "bad_evaluation")
    assert finding.severity == "error" and finding.message.startswith("`evaluation.")


def test_more_neighbours_than_there_are_images_are_told(table):
    finding = the(measuring_findings(config(ks=(1, 15, 16, 20)), table), "k_above_gallery")
    assert "holds 16, 20, but a query of test can find 15 images" in finding.message


@pytest.mark.parametrize("query, gallery", [([0, 1, 2], [3, 4]), ([0, 1], [0, 1, 2, 3]), ([0, 4], [0, 1, 2]), ([], [0, 1])])
def test_what_a_query_can_find_at_most_is_counted_as_by_hand(query, gallery):
    n, flags = 5, {}
    for name, rows in (("is_query", query), ("is_gallery", gallery)):
        flags[name] = [int(row in rows) for row in range(n)]
    made = read_table({"path": [f"{row}.png" for row in range(n)], "label": [0, 0, 1, 1, 1], "split": ["test"] * n, **flags})
    searches = {row: [other for other in gallery if other != row] for row in query} if query and gallery else {0: range(1, n)}
    assert n_to_find(made, "test") == max(len(found) for found in searches.values())


def test_ks_without_a_metric_of_k_are_idle(table):
    assert codes(measuring_findings(config(metrics=["map_at_r"], ks=(1, 99)), table)) == ["idle_setting"]
    assert codes(measuring_findings(config(metrics=["recall_at_k"], ks=(1, 2)), table)) == []
    assert codes(measuring_findings(config(metrics=["map_at_r"], coarse_metrics=["recall_at_k"], ks=(1, 2)), table)) == []
    assert codes(measuring_findings(config(metrics=["map_at_r"], coarse_metrics=["mrr"], ks=(1, 99)), table)) == ["idle_setting"]


def test_an_empty_split_and_the_training_split_are_told(table):
    assert codes(measuring_findings(config(split="val"), table)) == ["nothing_measured"]
    assert codes(measuring_findings(config(split="train"), table)) == ["measured_on_trained"]
    assert codes(measuring_findings(config(split="val", after_training=False), table)) == []


def test_another_similarity_is_a_note(table):
    found = measuring_findings(config(objective={"similarity": "dot"}), table)
    assert codes(found) == [] and codes(found, "note") == ["other_similarity"]


def test_measured_images_are_counted(table):
    assert [n_measured(config(split=split), table) for split in ("train", "val", "test")] == [48, 0, 16]
    assert n_measured(config(after_training=False), table) == 0
