"""The m-per-class sampler on ordinary and on pathological data."""

import math
import pickle
import time
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from kinfold.data.decks import Deck
from kinfold.data.samplers import MPerClassSampler, RandomBatchSampler, SequentialBatchSampler
from kinfold.errors import ConfigError, DataError


def rows_of(sizes):
    return [c for c, size in enumerate(sizes) for _ in range(size)]


def pairs_can_fill(sizes, batch_size):
    """Say, by trying every sum, whether distinct images of two or more classes, two or more of each, can fill a batch."""
    reach = {(0, 0)}
    for size in sizes:
        options = [0, *range(2, size + 1)]
        reach = {(min(k + (n > 0), 2), total + n) for k, total in reach for n in options if total + n <= batch_size}
    return (2, batch_size) in reach


@st.composite
def settings_of_a_sampler(draw):
    sizes = draw(st.lists(st.integers(1, 7), min_size=1, max_size=12))
    m = draw(st.integers(1, 6))
    least = 2 if m == 1 else 4
    n = sum(sizes)
    if n < least:
        sizes.append(4)
    batch_size = draw(st.integers(least, max(least, sum(sizes))))
    return sizes, m, batch_size, draw(st.integers(0, 5))


@settings(max_examples=400, deadline=None)
@given(settings_of_a_sampler())
def test_batches_are_full_distinct_and_hold_pairs_wherever_the_data_allow_it(case):
    sizes, m, batch_size, epoch = case
    label = rows_of(sizes)
    sampler = MPerClassSampler(label, m=m, batch_size=batch_size, seed=3)
    batches = list(sampler.epoch(epoch))
    assert len(batches) == len(sampler) == len(label) // batch_size
    for rows in batches:
        count = Counter(label[row] for row in rows)
        assert len(rows) == len(set(rows)) == batch_size
        assert len(count) >= min(2, len(sizes))
        if m == 1 or not pairs_can_fill([size for size in sizes if size > 1], batch_size):
            continue
        in_pairs = [c for c in count if count[c] > 1]
        assert len(in_pairs) >= 2
        assert all(sizes[c] == 1 for c in count if count[c] == 1)


@settings(max_examples=100, deadline=None)
@given(settings_of_a_sampler(), st.data())
def test_an_epoch_begun_later_is_its_tail(case, data):
    sizes, m, batch_size, epoch = case
    sampler = MPerClassSampler(rows_of(sizes), m=m, batch_size=batch_size)
    start = data.draw(st.integers(0, len(sampler)))
    assert list(sampler.epoch(epoch, start=start)) == list(sampler.epoch(epoch))[start:]


@pytest.mark.parametrize(("n_classes", "classes_a_batch"), [(37, 8), (40, 8), (9, 8), (8, 8), (100, 3)])
def test_the_first_batches_show_every_class(n_classes, classes_a_batch):
    label = rows_of([12] * n_classes)
    sampler = MPerClassSampler(label, m=4, batch_size=4 * classes_a_batch)
    first = list(sampler)[: math.ceil(n_classes / classes_a_batch)]
    assert {label[row] for rows in first for row in rows} == set(range(n_classes))


def test_no_class_comes_a_second_time_before_all_came_once():
    label = rows_of([30] * 11)
    batches = list(MPerClassSampler(label, m=3, batch_size=9))
    order = [c for rows in batches for c in dict.fromkeys(label[row] for row in rows)]
    shown = Counter()
    for c in order:
        shown[c] += 1
        # A class put off to the next batch may be overtaken by the other classes of its batch, never by more.
        assert shown[c] <= min(shown[k] for k in range(11)) + 2
    for deal in range(0, len(order) - 11, 11):
        assert len(set(order[deal : deal + 11])) >= 9


def test_images_of_a_class_all_come_before_one_comes_twice():
    label = rows_of([6, 10, 10])
    seen = [row for rows in MPerClassSampler(label, m=2, batch_size=4).epoch(0) for row in rows if label[row] == 0]
    assert len(set(seen[:6])) == 6


def test_every_class_gives_m_images_where_it_can():
    label = rows_of([5, 4, 9, 4, 6, 7])
    for rows in MPerClassSampler(label, m=4, batch_size=12):
        assert sorted(Counter(label[row] for row in rows).values()) == [4, 4, 4]


@pytest.mark.parametrize(
    ("sizes", "m", "batch_size", "expected"),
    [
        ([20] * 6, 4, 10, [2, 4, 4]),
        ([20] * 6, 4, 9, [2, 3, 4]),
        ([20] * 6, 2, 5, [2, 3]),
        ([20] * 6, 8, 8, [4, 4]),
        ([20] * 6, 4, 5, [2, 3]),
        ([20] * 6, 1, 5, [1] * 5),
        ([9, 9], 2, 9, [4, 5]),
        ([2, 40], 2, 12, [2, 10]),
        ([12], 4, 6, [6]),
        ([2, 2, 2, 3], 2, 5, [2, 3]),
        ([2, 2, 2, 2], 2, 5, [1, 2, 2]),
        ([2, 2, 1], 2, 5, [1, 2, 2]),
    ],
)
def test_odd_sizes_are_filled_as_documented(sizes, m, batch_size, expected):
    label = rows_of(sizes)
    for rows in MPerClassSampler(label, m=m, batch_size=batch_size):
        assert sorted(Counter(label[row] for row in rows).values()) == expected


def test_lone_images_get_their_share_beside_pairs(caplog):
    label = rows_of([1] * 200 + [10] * 10)
    sampler = MPerClassSampler(label, m=2, batch_size=10)
    assert sampler.n_singletons == 200
    assert "200 of 210 classes have a single image" in caplog.text
    for rows in sampler:
        assert sum(n >= 2 for n in Counter(label[row] for row in rows).values()) >= 2
    assert sum(row < 200 for rows in sampler for row in rows) == len(sampler) * 6


def test_lone_images_alone_make_full_batches():
    sampler = MPerClassSampler(rows_of([1] * 9), m=3, batch_size=4)
    assert [len(set(rows)) for rows in sampler] == [4, 4]


def test_images_never_drawn_are_counted():
    label = rows_of([1000, 10, 10])
    sampler = MPerClassSampler(label, m=4, batch_size=8)
    shown = {row for rows in sampler.epoch(2) for row in rows}
    assert sampler.n_never_drawn(2) == 1020 - len(shown) > 0
    assert RandomBatchSampler(10, batch_size=4).n_never_drawn() == 2


@pytest.mark.parametrize("label", [["b", "a", "b", "a"], torch.tensor([7, 2**60, 7, 2**60]), np.array([-1, 3, -1, 3])])
def test_labels_of_any_kind_are_grouped(label):
    (rows,) = MPerClassSampler(label, m=2, batch_size=4)
    assert sorted(rows) == [0, 1, 2, 3]


def test_the_seed_decides():
    label = rows_of([10] * 10)
    a, b, c = (list(MPerClassSampler(label, m=2, batch_size=8, seed=seed)) for seed in (0, 0, 1))
    assert a == b != c


def test_processes_share_the_batches_of_an_epoch_among_them():
    label = rows_of([9] * 15)
    whole = list(MPerClassSampler(label, m=3, batch_size=12))
    shares = [list(MPerClassSampler(label, m=3, batch_size=12, rank=rank, world_size=4)) for rank in range(4)]
    assert [len(share) for share in shares] == [2] * 4
    assert [share[i] for i in range(2) for share in shares] == whole[:8]


def test_a_hundred_thousand_classes_start_at_once():
    label = np.repeat(np.arange(100_000), 5)
    begin = time.perf_counter()
    batches = iter(MPerClassSampler(label, m=4, batch_size=128))
    next(batches)
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(1000):
        next(batches)
    assert first < 1.0
    assert time.perf_counter() - begin < 5.0


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"m": 0, "batch_size": 4}, "m = 0"),
        ({"m": 2, "batch_size": 3}, "batch_size = 3 cannot hold 2 classes of 2"),
        ({"m": 1, "batch_size": 1}, "batch_size = 1 cannot hold 2 classes of 1"),
        ({"m": 2, "batch_size": 21}, r"larger than the data \(20 rows\)"),
        ({"m": 2, "batch_size": 8, "world_size": 3}, "20 rows give 2 batches for 3"),
        ({"m": 2, "batch_size": 4, "rank": 2, "world_size": 2}, "rank = 2"),
        ({"m": 2, "batch_size": 4, "seed": -1}, "seed = -1"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(choice, words):
    with pytest.raises(ConfigError, match=words):
        MPerClassSampler(rows_of([5] * 4), **choice)


def test_labels_must_be_one_a_row():
    with pytest.raises(DataError, match=r"shape \(2, 2\)"):
        MPerClassSampler(np.zeros((2, 2)), m=1, batch_size=2)


def test_random_batches_show_every_row_once():
    rows = [row for rows in RandomBatchSampler(11, batch_size=4, drop_last=False) for row in rows]
    assert sorted(rows) == list(range(11)) != rows


def test_sequential_batches_keep_the_order():
    sampler = SequentialBatchSampler(7, 3)
    assert list(sampler) == list(sampler.epoch(5)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(sampler) == 3
    with pytest.raises(ConfigError, match="batch_size = 0"):
        SequentialBatchSampler(7, 0)


def test_cards_passed_over_come_next_in_their_order():
    deck = Deck(range(5), np.random.default_rng(0))
    expected = Deck(range(5), np.random.default_rng(0))
    order = [expected.draw(held=()) for _ in range(5)]
    assert deck.draw(held=set(order[:2])) == order[2]
    assert [deck.draw(held=()) for _ in range(4)] == [*order[:2], *order[3:]]


def test_samplers_survive_pickling():
    sampler = MPerClassSampler(rows_of([4] * 5), m=2, batch_size=4)
    assert list(pickle.loads(pickle.dumps(sampler)).epoch(1)) == list(sampler.epoch(1))


def test_a_data_loader_takes_it_as_batch_sampler():
    label = torch.tensor(rows_of([4] * 5))
    sampler = MPerClassSampler(label, m=2, batch_size=4)
    batches = [batch.tolist() for (batch,) in DataLoader(TensorDataset(label), batch_sampler=sampler)]
    assert batches == [label[rows].tolist() for rows in sampler]
