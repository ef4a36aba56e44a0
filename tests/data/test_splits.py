from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.data.read import read_table
from kinfold.data.splits import fold, hold_out_classes, split_classes, split_query_gallery
from kinfold.errors import ConfigError, DataError


def table_of(labels, **columns):
    return read_table({"path": [str(row) for row in range(len(labels))], "label": labels, **columns})


def classes_of(table, split):
    return set(table.of_split(split).classes)


LABELS = st.lists(st.integers(0, 12), min_size=1, max_size=60)


@given(
    labels=LABELS,
    every=st.integers(2, 6),
    train=st.floats(0.05, 1),
    share=st.floats(0, 1),
    n=st.integers(2, 5),
    seed=st.none() | st.integers(0, 9),
)
def test_no_class_is_ever_on_two_sides(labels, every, train, share, n, seed):
    table = table_of(labels)
    splits = [
        lambda: hold_out_classes(table, every=every),
        lambda: split_classes(table, train=train, val=min((1 - train) * share, 0.9), seed=seed),
        *(lambda k=k: fold(table, k, n=n, seed=seed) for k in range(n)),
    ]
    for split in splits:
        try:
            found = split()
        except DataError:
            continue
        assert all(
            not classes_of(found, one) & classes_of(found, other) for one, other in combinations(("train", "val", "test"), 2)
        )
        assert found.label == table.label
        assert found.item.tolist() == table.item.tolist()
        assert table.split == ("train",) * len(labels)


def test_every_fifth_training_class_by_sorted_name_is_held_out():
    labels = [f"c{number:02}" for number in range(12)] + ["a test class"]
    found = hold_out_classes(table_of(labels, split=["train"] * 12 + ["test"]), every=5)
    assert classes_of(found, "val") == {"c04", "c09"}
    assert classes_of(found, "test") == {"a test class"}
    assert classes_of(found, "train") == set(labels) - {"c04", "c09", "a test class"}


def test_whole_number_classes_are_counted_by_value():
    assert classes_of(hold_out_classes(table_of(list(range(1, 13))), every=10), "val") == {10}


def test_a_test_image_of_a_held_out_class_stays_in_test():
    found = hold_out_classes(table_of(["a", "b", "b"], split=["train", "train", "test"]), every=2)
    assert found.split == ("train", "val", "test")


def test_held_out_images_are_queries_and_gallery():
    found = hold_out_classes(
        table_of([1, 2, 3], split=["train", "train", "test"], is_query=[0, 0, 1], is_gallery=[0, 0, 0]), every=2
    )
    assert found.is_query.tolist() == [False, True, True]
    assert found.is_gallery.tolist() == [False, True, False]


def test_a_table_with_val_rows_or_too_few_classes_is_refused():
    with pytest.raises(DataError, match="already has 1 val"):
        hold_out_classes(table_of([1, 2, 3], split=["train", "train", "val"]), every=2)
    with pytest.raises(DataError, match="no class to hold out"):
        hold_out_classes(table_of([1, 2]), every=3)
    with pytest.raises(ConfigError, match="every = 1"):
        hold_out_classes(table_of([1, 2]), every=1)


@given(n_classes=st.integers(2, 30), n=st.integers(2, 8), seed=st.none() | st.integers(0, 5))
def test_folds_cover_every_class_once_and_differ_by_at_most_one(n_classes, n, seed):
    table = table_of(list(range(n_classes)))
    if n > n_classes:
        with pytest.raises(DataError, match="folds"):
            fold(table, 0, n=n, seed=seed)
        return
    parts = [classes_of(fold(table, k, n=n, seed=seed), "val") for k in range(n)]
    assert sorted(name for part in parts for name in part) == list(range(n_classes))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_fold_outside_the_folds_is_refused():
    for k, n in ((4, 4), (-1, 4), (0, 1)):
        with pytest.raises(ConfigError, match="fold k"):
            fold(table_of([1, 2, 3, 4]), k, n=n)


def test_by_default_the_first_half_of_the_sorted_classes_trains():
    found = split_classes(table_of(["d", "a", "c", "b", "a"]))
    assert found.split == ("test", "train", "test", "train", "train")


def test_shares_are_met_and_the_seed_decides_who_is_where():
    table = table_of(list(range(100)))
    one, again, other = (split_classes(table, train=0.6, val=0.1, seed=seed) for seed in (1, 1, 2))
    assert [len(classes_of(one, name)) for name in ("train", "val", "test")] == [60, 10, 30]
    assert one.split == again.split != other.split


def test_shares_that_cannot_be_are_refused():
    for train, val in ((0, 0.5), (0.8, 0.3), (1.2, 0), (0.5, -0.1)):
        with pytest.raises(ConfigError, match="shares"):
            split_classes(table_of([1, 2, 3]), train=train, val=val)
    with pytest.raises(DataError, match="leave none for val"):
        split_classes(table_of([1, 2, 3]), train=0.5, val=0.01)


@given(labels=LABELS, fraction=st.floats(0.05, 0.95), seed=st.integers(0, 5))
def test_queries_and_gallery_share_a_split_and_every_query_has_a_match(labels, fraction, seed):
    table = table_of(labels, split=["test" if row % 3 else "train" for row in range(len(labels))])
    found = split_query_gallery(table, fraction=fraction, seed=seed)
    rows = table.split_rows("test")
    label = np.array(labels)
    assert (found.is_query[rows] != found.is_gallery[rows]).all()
    for name in set(label[rows].tolist()):
        own = rows[label[rows] == name]
        n_queries = found.is_query[own].sum()
        assert n_queries == (0 if len(own) == 1 else min(max(1, np.floor(fraction * len(own) + 0.5)), len(own) - 1))
    assert found.is_query[table.split_rows("train")].all()


@pytest.mark.shared_data
def test_the_first_half_of_the_bird_classes_has_the_known_sizes(photographs):
    table = read_table(photographs / "cub200")
    numbers = read_table({"path": table.path, "label": [int(path.split("/")[1][:3]) for path in table.path]})
    found = split_classes(numbers)
    assert found.split == table.split
    held_out = hold_out_classes(table, every=5)
    assert len(classes_of(held_out, "val")) == 20
    held_out.check_disjoint("train", "val")
