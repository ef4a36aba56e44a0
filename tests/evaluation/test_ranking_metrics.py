import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.evaluation.metric_names import metrics_of
from kinfold.evaluation.ranks import ranks
from tests.evaluation.ranking_oracle import expected, metric

NAMES = [
    *(f"recall_at_{k}" for k in (1, 2, 3, 5, 100)),
    *(f"precision_at_{k}" for k in (1, 2, 3, 5, 100)),
    *("r_precision", "map_at_r", "map", "mrr", "ndcg"),
]


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_every_metric_is_the_mean_over_all_orders_of_ties(items):
    sims, relevant = [float(s) for s, _ in items], [r for _, r in items]
    found = ranks([[1.0]], [[s] for s in sims], ["a"], ["a" if r else "b" for r in relevant], similarity="dot")
    for one in metrics_of(NAMES, 1):
        value, wanted = one.of(found)[0].item(), expected(one.name, sims, relevant)
        assert value == pytest.approx(float("nan") if wanted is None else wanted, abs=1e-12, nan_ok=True), one.name


def test_every_metric_of_long_lists_without_ties_equals_its_definition():
    x, y = torch.randn(40, 6).double(), torch.randn(900, 6).double()
    label, other = torch.randint(12, (40,)), torch.randint(12, (900,))
    found, order = ranks(x, y, label, other, similarity="dot"), (x @ y.T).argsort(dim=1, descending=True)
    for one in metrics_of(NAMES, 1):
        wanted = [float(metric(one.name, (other[order[i]] == label[i]).int().tolist())) for i in range(40)]
        assert one.of(found).tolist() == pytest.approx(wanted, abs=1e-12), one.name


def test_a_constant_embedding_scores_exactly_chance():
    label = torch.tensor([0] * 3 + [1] * 30)
    found = ranks(torch.ones(33, 16), torch.ones(33, 16), label, label)
    values = {one.name: one.of(found)[0].item() for one in metrics_of(NAMES, 1)}
    assert values["recall_at_1"] == 3 / 33
    assert [values[name] for name in ("precision_at_1", "precision_at_5", "r_precision")] == pytest.approx(
        [3 / 33] * 3, abs=1e-15
    )
    assert values["recall_at_2"] == pytest.approx(1 - 30 * 29 / (33 * 32), abs=1e-15)
    assert values["recall_at_100"] == 1


def test_perfect_lists_score_exactly_one_and_ties_within_the_class_do_not_matter():
    label = torch.arange(20) % 4
    x = torch.nn.functional.one_hot(label).float()
    found = ranks(x, x, label, label)
    for one in metrics_of([name for name in NAMES if name not in ("precision_at_100",)], 1):
        assert (one.of(found) == 1).all(), one.name


def test_large_tie_groups_cost_no_enumeration():
    label = torch.arange(4000) % 5
    found = ranks(torch.ones(1, 2), torch.ones(4000, 2), label[:1], label)
    assert metrics_of("mrr", 1)[0].of(found).item() == pytest.approx(0.4024, abs=1e-3)
    assert metrics_of("map", 1)[0].of(found).item() == pytest.approx(0.2, abs=2e-3)
