import pytest
import torch

from kinfold.errors import DataError
from kinfold.evaluation import pair_counts as module
from kinfold.evaluation.pair_counts import pair_counts, rates_at
from kinfold.evaluation.pair_tiles import labelled_pairs
from tests.evaluation import pairs_oracle as oracle


@pytest.fixture
def example():
    x = torch.randint(-4, 5, (70, 2)).float()
    label = torch.randint(6, (70,))
    return x, label, oracle.kinds((x @ x.T).tolist(), label.tolist())


@pytest.mark.parametrize("bytes_a_pair", [64, 10**9])
def test_counts_equal_plain_loops_however_often_positive_pairs_are_merged(example, monkeypatch, bytes_a_pair):
    x, label, (positive, negative) = example
    monkeypatch.setattr(module, "BYTES_A_WAITING_PAIR", bytes_a_pair)
    counts = pair_counts(labelled_pairs(x, label, similarity="dot"))
    sims = sorted(set(positive))
    assert counts.sim.tolist() == sims
    assert counts.n_positive.tolist() == [positive.count(s) for s in sims]
    assert counts.n_tied.tolist() == [negative.count(s) for s in sims]
    above = [*sims[1:], float("inf")]
    assert counts.n_between.tolist() == [sum(a < s < b for s in negative) for a, b in zip(sims, above, strict=True)]
    assert counts.n_negative == len(negative)


@pytest.mark.parametrize("threshold", [-100.0, -3.0, 0.5, 4.0, 100.0, float("inf")])
def test_one_threshold_is_counted_alike(example, threshold):
    x, label, (positive, negative) = example
    found = rates_at(labelled_pairs(x, label, similarity="dot"), threshold)
    assert (found.n_true_accepts, found.n_positive) == (sum(s >= threshold for s in positive), len(positive))
    assert (found.n_false_accepts, found.n_negative) == (sum(s >= threshold for s in negative), len(negative))


@pytest.mark.parametrize("count", [pair_counts, lambda pairs: rates_at(pairs, 0.5)])
def test_one_kind_of_pair_alone_is_refused(count):
    with pytest.raises(DataError, match="no positive pair among 10 pairs"):
        count(labelled_pairs(torch.randn(5, 2), range(5)))
    with pytest.raises(DataError, match="no negative pair: all 10 pairs"):
        count(labelled_pairs(torch.randn(5, 2), [1] * 5))
