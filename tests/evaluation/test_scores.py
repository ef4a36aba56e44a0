import json

import pytest
import torch

from kinfold.errors import ConfigError, DataError
from kinfold.evaluation.evaluate import score
from kinfold.evaluation.scores import difference_interval


@pytest.fixture
def scores():
    x = torch.randn(60, 4)
    return score(x, [f"class {i % 7}" for i in range(59)] + ["lone"], metrics=["recall_at_k", "map_at_r", "nmi"])


def test_the_table_by_class_averages_the_queries_of_each_class(scores):
    table = scores.per_class()
    assert [row["label"] for row in table] == [f"class {i}" for i in range(7)]
    assert [row["n"] for row in table] == [9, 9, 9, 8, 8, 8, 8]
    for row in table:
        own = torch.tensor([scores.class_names[c] == row["label"] for c in scores.label.tolist()])
        assert row["map_at_r"] == pytest.approx(scores.per_query["map_at_r"][own].mean().item())
    assert "nmi" not in table[0]


def test_intervals_contain_the_mean_and_unknown_ones_are_refused(scores):
    for over in ("query", "class"):
        low, high = scores.interval("recall_at_4", over=over, level=0.9, seed=1)
        assert low < scores.metrics["recall_at_4"] < high
    with pytest.raises(ConfigError, match="did you mean `recall_at_4`"):
        scores.interval("recal_at_4")
    with pytest.raises(ConfigError, match="one value for all queries"):
        scores.interval("nmi")
    with pytest.raises(ConfigError, match="did you mean `query`"):
        scores.interval("map_at_r", over="querry")


def test_a_paired_difference_is_narrower_than_two_intervals_and_zero_for_itself(scores):
    assert difference_interval(scores, scores, "map_at_r") == (0, 0)
    x, label = torch.randn(300, 4), torch.arange(300) % 9
    a, b = (score(y, label, metrics="map_at_r") for y in (x, x + 0.05 * torch.randn(300, 4)))
    low, high = difference_interval(a, b, "map_at_r")
    own_low, own_high = a.interval("map_at_r")
    assert low <= a.metrics["map_at_r"] - b.metrics["map_at_r"] <= high
    assert high - low < own_high - own_low
    with pytest.raises(DataError, match="pair like with like"):
        difference_interval(a, scores, "map_at_r")


def test_scores_read_well_and_survive_json(scores):
    assert repr(scores).startswith("Scores(recall_at_1=")
    assert "59 queries scored, 1 query without a relevant item" in str(scores)
    found = json.loads(scores.to_json())
    assert found["metrics"] == scores.metrics
    assert (found["n_scored"], found["n_skipped"]) == (59, 1)
    assert found["settings"] == {"similarity": "cosine", "empty": "skip", "n_queries": 60, "n_gallery": 60}
