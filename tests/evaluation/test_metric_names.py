import pytest

from kinfold.errors import ConfigError
from kinfold.evaluation.metric_names import depth_of, metrics_of
from kinfold.evaluation.search import Depth


def names(metrics, ks=(1, 2)):
    return [metric.name for metric in metrics_of(metrics, ks)]


def test_no_choice_means_all_ranking_metrics_and_no_clustering():
    assert names(None) == [
        *("recall_at_1", "recall_at_2", "precision_at_1", "precision_at_2"),
        *("r_precision", "map_at_r", "map", "mrr", "ndcg"),
    ]


def test_families_follow_ks_and_single_names_bring_their_own():
    assert names("recall_at_k") == ["recall_at_1", "recall_at_2"]
    assert names(("recall_at_10", "recall_at_k", "recall_at_1", "ami")) == ["recall_at_10", "recall_at_1", "recall_at_2", "ami"]


@pytest.mark.parametrize(
    ("metrics", "depth"),
    [
        (["recall_at_k", "mrr"], Depth("best")),
        (["recall_at_1000", "precision_at_7", "precision_at_2"], Depth("top", 7)),
        (["recall_at_1000", "map_at_r"], Depth("first", 0)),
        (["precision_at_7", "r_precision"], Depth("first", 7)),
        (["recall_at_1", "map"], Depth("all")),
        (["ndcg"], Depth("all")),
    ],
)
def test_only_as_much_is_ranked_as_the_metrics_need(metrics, depth):
    assert depth_of(metrics_of(metrics, 1)) == depth


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("recal_at_k", "did you mean `recall_at_k`"),
        (["map_at_k"], "did you mean `map_at_r`"),
        (["recall_at_0"], "recall_at_0"),
        (["precision_at_-1"], "integer of at least 1"),
        ([], "no metric"),
        (5, "metric `5`"),
    ],
)
def test_what_is_no_metric_is_refused(metrics, message):
    with pytest.raises(ConfigError, match=message):
        metrics_of(metrics, (1,))
