import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN

from kinfold.core.similarity import SIMILARITIES
from kinfold.errors import ConfigError, DataError, KinfoldError, ShapeError
from kinfold.evaluation.evaluate import score, score_levels
from tests.evaluation.ranking_oracle import expected

ALL = ["recall_at_1", "recall_at_2", "precision_at_2", "r_precision", "map_at_r", "map", "mrr", "ndcg"]


def same(a, b):
    return a.metrics == b.metrics and all(torch.equal(a.per_query[name], b.per_query[name]) for name in a.per_query)


@given(st.integers(2, 7), st.integers(0, 2**30))
@settings(max_examples=60, deadline=None)
def test_a_set_searched_in_itself_equals_the_definition(n, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(-1, 2, (n, 2), generator=generator).float()
    label, item = (torch.randint(3, (n,), generator=generator) for _ in range(2))
    rows = [[j for j in range(n) if item[j] != item[i]] for i in range(n)]
    sims = (x @ x.T).tolist()
    wanted = {
        name: [expected(name, [sims[i][j] for j in rows[i]], [bool(label[i] == label[j]) for j in rows[i]]) for i in range(n)]
        for name in ALL
    }
    lone = [i for i in range(n) if wanted["map"][i] is None]
    if len(lone) == n:
        with pytest.raises(DataError, match="none of the"):
            score(x, label, item=item, metrics=ALL, similarity="dot")
        return
    found = score(x, label, item=item, metrics=ALL, similarity="dot")
    assert found.skipped.tolist() == lone
    for name in ALL:
        values = [value for value in wanted[name] if value is not None]
        assert found.per_query[name].tolist() == pytest.approx(values, abs=1e-12)
        assert found.metrics[name] == pytest.approx(sum(values) / len(values), abs=1e-12)


@pytest.mark.parametrize("similarity", [*sorted(SIMILARITIES), lambda x, y: -torch.cdist(x, y, p=1)])
@pytest.mark.parametrize("metrics", [None, ("recall_at_k", "map_at_r")])
def test_values_are_equal_for_every_budget(similarity, metrics):
    label = torch.cat([torch.arange(300) % 4, torch.arange(2300) // 5 + 4])
    x = torch.randn(2600, 8) + torch.randn(600, 8)[label]
    scores = [score(x, label, similarity=similarity, metrics=metrics, memory=memory) for memory in ("1MB", "20MB", "2GB")]
    assert same(scores[0], scores[1])
    assert same(scores[0], scores[2])


@pytest.mark.parametrize("similarity", sorted(SIMILARITIES))
def test_a_constant_embedding_scores_exactly_chance_in_any_order(similarity):
    label = torch.arange(3000) // 3
    x = torch.full((3000, 7), 0.3)
    for order in (torch.arange(3000), torch.randperm(3000)):
        found = score(x, label[order], similarity=similarity, ks=(1, 100), metrics=["recall_at_k", "map_at_r", "mrr"])
        assert (found.per_query["recall_at_1"] == 2 / 2999).all()
        assert found.metrics["recall_at_100"] == pytest.approx(1 - (2899 * 2898) / (2999 * 2998), abs=1e-12)
        assert found.per_query["map_at_r"].unique().numel() == 1


def test_the_order_of_rows_does_not_matter_with_duplicates_and_stretched_rows():
    label = torch.randint(40, (900,))
    x = torch.randn(300, 16).repeat(3, 1) * torch.tensor([1.0, 3.0, 0.7]).repeat_interleave(300)[:, None]
    order = torch.randperm(900)
    a, b = score(x, label), score(x[order], label[order])
    for name in a.per_query:
        assert b.per_query[name][order.argsort()[a.query]].tolist() == pytest.approx(a.per_query[name].tolist(), abs=1e-12)


def test_the_first_k_of_many_metrics_agree_with_another_library():
    x, label = torch.randn(500, 8), torch.arange(500) % 60
    theirs = AccuracyCalculator(
        include=(
            "precision_at_1",
            "r_precision",
            "mean_average_precision_at_r",
            "mean_average_precision",
            "mean_reciprocal_rank",
        ),
        k=499,
        knn_func=CustomKNN(CosineSimilarity()),
    ).get_accuracy(x, label)
    ours = score(x, label).metrics
    assert ours["precision_at_1"] == ours["recall_at_1"] == pytest.approx(theirs["precision_at_1"], abs=1e-6)
    assert ours["r_precision"] == pytest.approx(theirs["r_precision"], abs=1e-6)
    assert ours["map_at_r"] == pytest.approx(theirs["mean_average_precision_at_r"], abs=1e-6)
    assert ours["map"] == pytest.approx(theirs["mean_average_precision"], abs=1e-4)
    assert ours["mrr"] == pytest.approx(theirs["mean_reciprocal_rank"], abs=1e-4)


@pytest.mark.parametrize("name", [*ALL, "nmi", "ami", "recall_at_k", "precision_at_k"])
def test_every_metric_can_be_asked_for_alone(name):
    x, label = torch.randn(40, 3), torch.arange(40) % 6
    everything = score(x, label, metrics=[*ALL, "nmi", "ami", "recall_at_k", "precision_at_k"])
    alone = score(x, label, metrics=name)
    assert alone.metrics
    assert alone.metrics.items() <= everything.metrics.items()


def test_every_kind_of_input_gives_the_same_scores():
    x, label = torch.randn(50, 4).half().float(), torch.arange(50) % 6
    plain = score(x, label)
    names = [f"class {c}" for c in label.tolist()]
    for rows, labels in (
        (x.numpy(), label.numpy()),
        (x.tolist(), label.tolist()),
        (x.clone().requires_grad_(), names),
        (x.half(), np.array(names)),
        (x, label + 2**24),
        (x, label + 2**53),
        (x, [c + 2**80 for c in label.tolist()]),
        (x.T.contiguous().T, [10**9 * c for c in label.tolist()]),
    ):
        assert score(rows, labels).metrics == pytest.approx(plain.metrics, abs=1e-12)


def test_labels_above_the_exact_range_of_floats_stay_apart():
    for big in (2**24, 2**53, 2**63):
        x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
        assert score(x, [big, big + 1, big + 1, big], metrics="recall_at_1").metrics["recall_at_1"] == 0


def test_autocast_and_gradients_around_the_call_change_nothing():
    x, label = torch.randn(300, 8, requires_grad=True), torch.arange(300) % 50
    plain = score(x, label)
    with torch.autocast("cpu", torch.bfloat16):
        assert same(score(x, label), plain)


def test_arguments_stay_as_they_were():
    x, label = torch.randn(30, 4), torch.arange(30) % 4
    copy = x.clone()
    score(x, label)
    score(x, label, gallery=x, gallery_label=label, similarity="dot")
    assert torch.equal(x, copy)


def test_a_gallery_is_searched_whole_unless_items_say_otherwise():
    x, label, item = torch.randn(20, 3), torch.arange(20) % 5, [f"photo {i}" for i in range(20)]
    whole = score(x, label, gallery=x, gallery_label=label)
    assert whole.metrics["recall_at_1"] == 1
    own_left_out = score(x, label, gallery=x, gallery_label=label, item=item, gallery_item=item)
    assert own_left_out.metrics == pytest.approx(score(x, label).metrics, abs=1e-12)


def test_rows_of_one_item_exclude_each_other():
    x = torch.tensor([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0], [-0.3, 1.0]])
    assert score(x, [0, 0, 1, 0], metrics="recall_at_1").metrics["recall_at_1"] == pytest.approx(2 / 3)
    found = score(x, [0, 0, 1, 0], item=[5, 5, 6, 10**9], metrics="recall_at_1")
    assert found.per_query["recall_at_1"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("empty", "mean", "n"), [("skip", 1.0, 4), ("neg", 0.8, 5), ("pos", 1.0, 5)])
def test_queries_without_a_relevant_item_follow_the_rule(empty, mean, n):
    x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0], [-1.0, -1.0]])
    found = score(x, ["a", "a", "b", "b", "lone"], metrics=["recall_at_1", "map_at_r"], empty=empty)
    assert found.metrics == {"recall_at_1": pytest.approx(mean), "map_at_r": pytest.approx(mean)}
    assert len(found.per_query["map_at_r"]) == len(found.query) == n
    assert found.skipped.tolist() == [4]


def test_lone_queries_stop_with_their_rows_if_told():
    with pytest.raises(DataError, match="1 of 3 queries have no relevant item: rows 1"):
        score(torch.randn(3, 2), [1, 2, 1], empty="error")


def test_one_query_one_class_and_k_above_the_gallery_work():
    assert score([[1.0, 0.0]], ["a"], gallery=[[1.0, 0.0]], gallery_label=["a"]).metrics["ndcg"] == 1
    found = score(torch.randn(9, 2), ["a"] * 9, ks=(1, 8, 10**12), metrics=["recall_at_k", "precision_at_k", "map", "nmi"])
    assert set(found.metrics.values()) == {1.0}


def test_a_query_whose_class_the_gallery_lacks_is_skipped():
    found = score(torch.randn(3, 2), ["a", "b", "c"], gallery=torch.randn(2, 2), gallery_label=["b", "z"])
    assert found.skipped.tolist() == [0, 2]
    assert found.query.tolist() == [1]


def test_a_zero_row_has_cosine_zero_to_everything():
    x = torch.tensor([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    found = score(x, ["a", "b", "a"], ks=1, metrics="recall_at_k")
    assert found.per_query["recall_at_1"].tolist() == [0.5, 1]


x3 = torch.zeros(3, 2)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((x3, [1, 2]), {}, ShapeError, "label has 2 entries for 3"),
        ((x3, [1, 1, 2]), {"item": [1]}, ShapeError, "item has 1"),
        ((x3, [1, 1, 2]), {"gallery": torch.zeros(2, 5), "gallery_label": [1, 2]}, ShapeError, "dimensions"),
        ((x3, [1, 1, 2]), {"gallery": x3, "gallery_label": [1]}, ShapeError, "gallery_label has 1"),
        ((x3, [1, 1, 2]), {"gallery": x3}, ConfigError, "gallery_label"),
        ((x3, [1, 1, 2]), {"gallery_label": [1]}, ConfigError, "gallery"),
        ((x3, [1, 1, 2]), {"gallery": x3, "gallery_label": [1, 1, 1], "item": [1, 2, 3]}, ConfigError, "gallery_item"),
        ((torch.zeros(0, 2), []), {}, DataError, "nothing to score"),
        ((x3 * torch.nan, [1, 1, 2]), {}, DataError, "3 of 3 rows: 0, 1, 2"),
        ((x3, [1, 2, 3]), {}, DataError, "none of the 3 queries"),
        ((x3, [1, 1, 0.5]), {}, DataError, "0.5"),
        ((x3, [1, 1, 2]), {"ks": (0,)}, ConfigError, "ks holds 0"),
        ((x3, [1, 1, 2]), {"ks": (True,)}, ConfigError, "ks holds True"),
        ((x3, [1, 1, 2]), {"metrics": "recall"}, ConfigError, "did you mean `recall_at_k`"),
        ((x3, [1, 1, 2]), {"similarity": "cosin"}, ConfigError, "did you mean `cosine`"),
        ((x3, [1, 1, 2]), {"empty": "skipp"}, ConfigError, "did you mean `skip`"),
        ((x3, [1, 1, 2]), {"memory": "lots"}, ConfigError, "512MB"),
    ],
)
def test_what_cannot_be_scored_is_refused_in_words(arguments, options, error, message):
    with pytest.raises(error, match=message):
        score(*arguments, **options)
    assert issubclass(error, KinfoldError)


def test_levels_are_scored_on_one_set_with_self_left_out():
    x, fine, coarse = torch.randn(60, 4), [f"f{i % 12}" for i in range(60)], [i % 3 for i in range(60)]
    found = score_levels(x, {"fine": fine, "coarse": coarse})
    assert list(found) == ["fine", "coarse"]
    assert found["fine"].metrics == pytest.approx(score(x, fine).metrics, abs=1e-12)
    assert found["coarse"].metrics == pytest.approx(score(x, coarse).metrics, abs=1e-12)


def test_masks_choose_queries_and_gallery_and_a_row_never_finds_itself():
    x, label = torch.randn(40, 4), torch.arange(40) % 6
    is_query, is_gallery = np.arange(40) < 15, [int(i >= 10) for i in range(40)]
    found = score_levels(x, {"class": label}, is_query=is_query, is_gallery=is_gallery)["class"]
    plain = score(x[:15], label[:15], gallery=x[10:], gallery_label=label[10:], item=range(15), gallery_item=range(10, 40))
    assert same(found, plain)
    assert plain.metrics["recall_at_1"] < 1
    with pytest.raises(ShapeError, match="is_query has 2"):
        score_levels(x, {"class": label}, is_query=[True, False])
    with pytest.raises(ConfigError, match="is_gallery selects no row"):
        score_levels(x, {"class": label}, is_gallery=[False] * 40)


def test_levels_but_the_first_may_have_metrics_of_their_own():
    x, label = torch.randn(30, 4), torch.arange(30) % 6
    levels = {"class": label, "family": label % 3, "order": label % 2}
    found = score_levels(x, levels, metrics=["map_at_r", "mrr"], coarse_metrics="recall_at_1")
    alike = score_levels(x, levels, metrics=["map_at_r", "mrr", "recall_at_1"])
    assert [list(scores.metrics) for scores in found.values()] == [["map_at_r", "mrr"], ["recall_at_1"], ["recall_at_1"]]
    for level, scores in found.items():
        assert all(torch.equal(value, alike[level].per_query[name]) for name, value in scores.per_query.items())
