"""The hierarchical sampler: near and far classes in every batch, every class equally often."""

import pickle
import time
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.data.group_deck import GroupDeck
from kinfold.data.samplers import HierarchicalSampler, MPerClassSampler
from kinfold.errors import ConfigError, DataError


def rows_of(sizes):
    return [c for c, size in enumerate(sizes) for _ in range(size)]


def made(n_classes, *, n_images=8, **how):
    """Return a sampler of groups with so many classes, its labels, and the group of each class."""
    group = rows_of(n_classes)
    label = rows_of([n_images] * len(group))
    return HierarchicalSampler(label, [group[c] for c in label], **how), label, group


def classes_of(rows, label):
    return list(dict.fromkeys(label[row] for row in rows))


@st.composite
def any_case(draw):
    """Draw classes of 1 to 6 images in 1 to 5 groups, and settings that fit."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=14))
    group = [draw(st.integers(0, 4)) for _ in sizes]
    m = draw(st.integers(1, 5))
    least = 3 if m == 1 else 6
    if sum(sizes) < least:
        sizes, group = [*sizes, 6], [*group, 0]
    how = {"m": m, "classes_per_group": draw(st.integers(2, 5)), "batch_size": draw(st.integers(least, sum(sizes)))}
    return sizes, group, how, draw(st.integers(0, 5))


@settings(max_examples=500, deadline=None)
@given(any_case())
def test_whatever_the_data_batches_are_full_with_a_near_and_a_far_class_wherever_there_is_one(case):
    sizes, group, how, epoch = case
    label, m = rows_of(sizes), how["m"]
    sampler = HierarchicalSampler(label, [group[c] for c in label], seed=3, **how)
    batches = list(sampler.epoch(epoch))
    assert len(batches) == len(sampler) == len(label) // how["batch_size"]
    with_pairs = [c for c, size in enumerate(sizes) if size > 1 or m == 1]
    has_near = any(n > 1 for n in Counter(group[c] for c in with_pairs).values())
    n_groups = len({group[c] for c in with_pairs})
    for rows in batches:
        assert len(rows) == len(set(rows)) == how["batch_size"]
        count = Counter(label[row] for row in rows)
        paired = [c for c in count if count[c] > 1 or m == 1]
        assert len(paired) >= min(3, len(with_pairs))
        assert len({group[c] for c in paired}) >= min(2, n_groups)
        assert has_near == any(n > 1 for n in Counter(group[c] for c in paired).values())


@settings(max_examples=100, deadline=None)
@given(any_case(), st.data())
def test_an_epoch_begun_later_is_its_tail(case, data):
    sizes, group, how, epoch = case
    label = rows_of(sizes)
    sampler = HierarchicalSampler(label, [group[c] for c in label], **how)
    start = data.draw(st.integers(0, len(sampler)))
    assert list(sampler.epoch(epoch, start=start)) == list(sampler.epoch(epoch))[start:]


@settings(max_examples=100, deadline=None)
@given(
    n_groups=st.integers(2, 7),
    per_group=st.integers(2, 4),
    runs=st.integers(1, 3),
    m=st.integers(1, 3),
    room=st.integers(2, 7),
    seed=st.integers(0, 5),
)
def test_where_all_goes_round_a_batch_is_groups_by_classes_by_images(n_groups, per_group, runs, m, room, seed):
    room = min(room, n_groups)
    how = {"m": m, "classes_per_group": per_group, "batch_size": room * per_group * m}
    sampler, label, group = made([per_group * runs] * n_groups, seed=seed, **how)
    for rows in sampler:
        assert set(Counter(label[row] for row in rows).values()) == {m}
        assert Counter(Counter(group[c] for c in classes_of(rows, label)).values()) == {per_group: room}


@settings(max_examples=150, deadline=None)
@given(
    n_classes=st.lists(st.integers(1, 9), min_size=3, max_size=12),
    per_group=st.integers(2, 5),
    room=st.integers(2, 4),
    m=st.integers(1, 4),
    n_images=st.integers(4, 40),
    seed=st.integers(0, 3),
)
def test_classes_come_equally_often_where_no_promise_asks_for_more(n_classes, per_group, room, m, n_images, seed):
    places, n = per_group * room, sum(n_classes)
    near = sum(size for size in n_classes if size > 1)
    if places > n or near * places < per_group * n or max(n_classes) * places > (places - per_group) * n:
        return
    how = {"m": m, "classes_per_group": per_group, "batch_size": places * m, "seed": seed}
    sampler, label, _ = made(n_classes, n_images=n_images, **how)
    shown = Counter(c for rows in sampler for c in classes_of(rows, label))
    often = [shown[c] for c in range(n)]
    assert max(often) - min(often) <= 4


def test_no_group_comes_more_often_than_its_classes_in_the_mean_over_epochs():
    n_classes = [1] * 30 + [2] * 10 + [5] * 4 + [12] * 3
    sampler, label, group = made(n_classes, n_images=4, m=2, classes_per_group=4, batch_size=32)
    shown = np.zeros(len(group))
    for epoch in range(150):
        for rows in sampler.epoch(epoch):
            shown[classes_of(rows, label)] += 1
    size = np.array(n_classes)[group]
    by_size = [shown[size == n].mean() / shown.mean() for n in (1, 2, 5, 12)]
    assert by_size == pytest.approx([1] * 4, abs=0.05)


def test_the_class_of_a_tiny_family_is_not_in_every_batch():
    sampler, label, _ = made([60] + [1] * 6, m=2, classes_per_group=4, batch_size=32)
    often = Counter(c for rows in sampler for c in classes_of(rows, label))
    of_tiny = [often[c] for c in range(60, 66)]
    assert max(of_tiny) <= max(often[c] for c in range(60)) + 1 < len(sampler) / 3


def test_where_few_groups_have_two_classes_these_give_the_near_class_of_every_batch():
    sampler, label, _ = made([1] * 40 + [2], m=2, classes_per_group=4, batch_size=16)
    for rows in sampler:
        assert {40, 41} <= set(classes_of(rows, label))


def test_batches_hold_many_more_near_pairs_than_those_of_the_plain_sampler():
    how = {"m": 2, "batch_size": 32}
    sampler, label, group = made([4] * 20, classes_per_group=4, **how)

    def near(batches):
        classes = [classes_of(rows, label) for rows in batches]
        return np.mean([sum(group[a] == group[b] for a in c for b in c if a < b) for c in classes])

    assert near(sampler) == 4 * 6
    assert near(MPerClassSampler(label, **how)) < 24 / 3


def test_images_of_a_class_all_come_before_one_comes_twice():
    sampler, label, _ = made([3, 3], n_images=6, m=2, classes_per_group=2, batch_size=8)
    for c in range(6):
        seen = [row for rows in sampler.epoch(0) for row in rows if label[row] == c]
        assert len(set(seen[:6])) == min(6, len(seen))


def test_a_run_that_is_cut_is_made_up_for():
    sampler, label, group = made([4] * 5, n_images=60, m=2, classes_per_group=4, batch_size=12)  # six places: a run and a half
    shown = Counter(group[c] for rows in sampler for c in classes_of(rows, label))
    assert max(shown.values()) - min(shown.values()) <= 4


def test_groups_of_unequal_size_give_what_they_have_and_others_fill_up():
    sampler, label, group = made([2] * 8 + [8], m=2, classes_per_group=4, batch_size=16)
    batches = [Counter(group[c] for c in classes_of(rows, label)) for epoch in range(20) for rows in sampler.epoch(epoch)]
    for runs in batches:
        assert sum(runs.values()) == 8 and max(runs[g] for g in range(8)) <= 2 and runs[8] <= 4
    assert any(len(runs) == 3 for runs in batches) and any(len(runs) == 4 for runs in batches)


def test_a_batch_of_seven_two_image_classes_keeps_its_near_and_far_class_and_leaves_one_image_alone():
    group = [0, 0, 1, 1, 0]
    label = rows_of([2, 2, 2, 2, 3])  # three images of the last would make it go round, beside two others of its group
    sampler = HierarchicalSampler(label, [group[c] for c in label], m=2, classes_per_group=2, batch_size=7)
    for epoch in range(40):
        for rows in sampler.epoch(epoch):
            paired = [group[c] for c, n in Counter(label[row] for row in rows).items() if n > 1]
            assert len(set(paired)) > 1 and max(Counter(paired).values()) > 1


def test_classes_with_one_image_get_their_share_beside_three_classes_with_pairs(caplog):
    label = rows_of([1] * 100 + [10] * 6)
    group = [c % 3 for c in label]
    sampler = HierarchicalSampler(label, group, m=2, classes_per_group=2, batch_size=16)
    assert sampler.n_singletons == 100
    assert "100 of 106 classes have a single image" in caplog.text
    for rows in sampler:
        assert sum(n > 1 for n in Counter(label[row] for row in rows).values()) >= 3
    assert sum(row < 100 for rows in sampler for row in rows) == len(sampler) * 10


def test_one_group_alone_makes_batches_as_the_plain_sampler_does():
    sampler, label, _ = made([6], m=2, classes_per_group=4, batch_size=8)
    assert all(len(classes_of(rows, label)) == 4 for rows in sampler)


def test_a_class_put_back_comes_first_when_its_group_comes():
    deck = GroupDeck(np.arange(6), np.array([0, 0, 0, 1, 1, 1]), run=2, rng=np.random.default_rng(0))
    first = deck.draw({})
    deck.put_back(first)
    assert deck.draw({}, lambda c: c // 3 == first // 3) == first
    fellow = deck.draw({first: 1})
    assert fellow != first and fellow // 3 == first // 3
    assert deck.draw({first: 1, fellow: 1}) // 3 != first // 3
    assert deck.draw({first: 1}, lambda c: c == 5) == 5


def test_a_class_put_back_costs_its_group_nothing():
    deck = GroupDeck(np.arange(2), np.array([0, 1]), run=2, rng=np.random.default_rng(0))
    for _ in range(20):
        deck.put_back(deck.draw({}, lambda c: c == 0))
    assert abs(sum(deck.draw({}) for _ in range(20)) - 10) <= 1


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor, lambda group: [f"family {g}" for g in group]])
def test_groups_of_any_kind_mean_the_same(kind):
    label = rows_of([4] * 6)
    group = [c // 2 for c in label]
    how = {"m": 2, "classes_per_group": 2, "batch_size": 8}
    assert list(HierarchicalSampler(label, kind(group), **how)) == list(HierarchicalSampler(label, group, **how))


def test_processes_share_the_batches_of_an_epoch_among_them():
    how = {"m": 2, "classes_per_group": 2, "batch_size": 8}
    whole = list(made([4] * 5, **how)[0])
    shares = [list(made([4] * 5, rank=rank, world_size=4, **how)[0]) for rank in range(4)]
    assert [len(share) for share in shares] == [5] * 4
    assert [share[i] for i in range(5) for share in shares] == whole


def test_it_survives_pickling():
    sampler, _, _ = made([3, 4], m=2, classes_per_group=2, batch_size=8)
    assert list(pickle.loads(pickle.dumps(sampler)).epoch(1)) == list(sampler.epoch(1))


def test_a_hundred_thousand_classes_in_ten_thousand_groups_start_at_once():
    label = np.repeat(np.arange(100_000), 5)
    begin = time.perf_counter()
    batches = iter(HierarchicalSampler(label, label % 10_000, m=4, classes_per_group=4, batch_size=128))
    next(batches)
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    for _ in range(300):
        next(batches)
    assert first < 1.0
    assert time.perf_counter() - begin < 3.0


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"classes_per_group": 1}, "classes_per_group = 1: near negatives"),
        ({"m": 0}, "m = 0"),
        ({"batch_size": 5}, "batch_size = 5 cannot hold 3 classes of 2"),
        ({"m": 1, "batch_size": 2}, "batch_size = 2 cannot hold 3 classes of 1"),
        ({"batch_size": 21}, r"larger than the data \(20 rows\)"),
        ({"seed": -1}, "seed = -1"),
        ({"rank": 2, "world_size": 2}, "rank = 2"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_once(choice, words):
    with pytest.raises(ConfigError, match=words):
        made([2, 2], n_images=5, **{"m": 2, "classes_per_group": 2, "batch_size": 8, **choice})


def test_a_class_in_two_groups_is_refused():
    with pytest.raises(DataError, match="class owl lies in two groups, night and song"):
        HierarchicalSampler(["owl", "owl", "wren"] * 2, ["night", "song", "song"] * 2, m=2, classes_per_group=2, batch_size=6)


def test_groups_must_be_one_a_row():
    with pytest.raises(DataError, match=r"group has shape \(3,\), label \(6,\)"):
        HierarchicalSampler([0, 0, 1, 1, 2, 2], [0, 0, 1], m=2, classes_per_group=2, batch_size=6)
