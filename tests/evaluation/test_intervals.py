import pytest
import torch

from kinfold.errors import ConfigError, DataError
from kinfold.evaluation.intervals import bootstrap_interval


def test_the_interval_over_queries_has_the_width_that_theory_gives():
    value = (torch.arange(400) % 4 == 0).double()
    low, high = bootstrap_interval(value, torch.zeros(400, dtype=torch.long))
    half = 1.96 * (0.25 * 0.75 / 400) ** 0.5
    assert low == pytest.approx(0.25 - half, abs=0.006)
    assert high == pytest.approx(0.25 + half, abs=0.006)


def test_drawing_whole_classes_is_wider_where_classes_succeed_together():
    group = torch.arange(10).repeat_interleave(40)
    value = (group % 2).double()
    low, high = bootstrap_interval(value, group, over="class")
    half = 1.96 * (0.5 * 0.5 / 10) ** 0.5
    assert high - low == pytest.approx(2 * half, abs=0.07)
    query_low, query_high = bootstrap_interval(value, group)
    assert high - low > 4 * (query_high - query_low)


def test_class_resamples_weigh_queries_equally():
    value, group = torch.tensor([1.0] * 98 + [0.0, 0.0]), torch.tensor([0] * 98 + [1, 2])
    low, high = bootstrap_interval(value, group, over="class", level=0.3)
    assert low > 0.97
    assert high <= 1


def test_the_seed_decides_the_draws_and_the_level_the_width():
    value, group = torch.rand(50), torch.arange(50)
    assert bootstrap_interval(value, group, seed=1) == bootstrap_interval(value, group, seed=1)
    assert bootstrap_interval(value, group, seed=1) != bootstrap_interval(value, group, seed=2)
    wide, narrow = bootstrap_interval(value, group, level=0.99), bootstrap_interval(value, group, level=0.5)
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"level": 0.0}, ConfigError),
        ({"level": 95.0}, ConfigError),
        ({"over": "item"}, ConfigError),
        ({"over": "class"}, DataError),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, error):
    with pytest.raises(error):
        bootstrap_interval(torch.rand(5), torch.zeros(5, dtype=torch.long), **options)
    with pytest.raises(DataError, match="at least two"):
        bootstrap_interval(torch.rand(1), torch.zeros(1, dtype=torch.long))
