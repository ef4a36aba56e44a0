"""What batches hold, counted from the sampler, against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.checks.sampling import drawn, sampling_findings
from kinfold.data.samplers import MPerClassSampler, RandomBatchSampler
from tests.checks.tiny import codes, pairwise, proxies, recipe, the


def table_of(*sizes):
    """Return a table of classes with so many images each, all of split train."""
    label = [number for number, size in enumerate(sizes) for _ in range(size)]
    return kinfold.read_table({"path": [f"{row}.png" for row in range(len(label))], "label": label})


def found(table, made, objective=None):
    label, batches = table.class_index, made.batches
    if batches.sampler == "random":
        sampler = RandomBatchSampler(len(label), batch_size=batches.batch_size, seed=made.seed)
    else:
        sampler = MPerClassSampler(label, m=batches.images_per_class, batch_size=batches.batch_size, seed=made.seed)
    return sampling_findings(made, table, proxies(table) if objective is None else objective, sampler)


@settings(max_examples=40, deadline=None)
@given(label=st.lists(st.integers(0, 5), min_size=8, max_size=40), batch_size=st.integers(4, 8), seed=st.integers(0, 3))
def test_an_epoch_is_counted_as_by_hand(label, batch_size, seed):
    label = np.unique(label, return_inverse=True)[1]
    sampler = RandomBatchSampler(len(label), batch_size=batch_size, seed=seed)
    batches = list(sampler.epoch(0))
    n_paired = sum(any(label[a] == label[b] for b in rows if b != a) for rows in batches for a in rows)
    shown = [row for rows in batches for row in rows]
    counted = drawn(sampler, label)
    assert counted.of_class.tolist() == [sum(label[row] == number for row in shown) for number in range(label.max() + 1)]
    assert counted.n_rows_unseen == len(label) - len(set(shown))
    assert counted.paired == pytest.approx(n_paired / len(shown))
    assert counted.n_batches == len(batches)


def test_balanced_classes_and_a_batch_that_goes_round_are_healthy():
    assert codes(found(table_of(*[8] * 6), recipe())) == []


def test_a_batch_that_is_no_multiple_is_uneven():
    finding = the(found(table_of(*[8] * 6), recipe(batches={"batch_size": 13})), "uneven_batch")
    assert "`batches.batch_size` = 13" in finding.message and "12 or 15" in finding.remedy


def test_more_room_than_classes_is_told():
    made = recipe(batches={"batch_size": 24, "images_per_class": 3})
    finding = the(found(table_of(*[8] * 6), made), "few_classes")
    assert "room for 8 classes" in finding.message and "at most 18" in finding.remedy
    assert codes(found(table_of(*[8] * 8), made)) == []


def test_classes_without_room_in_an_epoch_are_named():
    table = table_of(*[4] * 10)  # 3 batches of 3 classes
    made = recipe(batches={"batch_size": 12, "images_per_class": 4})
    finding = the(found(table, made), "classes_never_drawn")
    seen = {table.label[row] for rows in MPerClassSampler(table.class_index, m=4, batch_size=12).epoch(0) for row in rows}
    missing = sorted(set(table.classes) - seen)
    assert finding.severity == "warning" and len(missing) == 1
    assert f"1 of 10 classes are in none of the 3 batches of the first epoch: {missing[0]}" in finding.message
    assert the(found(table, made, pairwise()), "classes_never_drawn").severity == "note"


def test_images_of_large_classes_are_counted_as_unseen():
    finding = the(found(table_of(100, 6, 6, 6), recipe()), "images_never_drawn")
    assert finding.severity == "note"
    assert "images_never_drawn" not in codes(found(table_of(*[8] * 6), recipe()), "note"), "the last images never fill a batch"


@pytest.mark.parametrize("batches", [{"images_per_class": 1}, {"sampler": "random", "batch_size": 2}])
def test_pairs_without_positives_are_an_error_for_pair_losses_alone(batches):
    table = table_of(*[2] * 40)
    made = recipe(batches={"batch_size": 8, **batches})
    if "sampler" in batches:
        made = recipe(batches={"batch_size": 2, "sampler": "random"}, seed=4)
    finding = the(found(table, made, pairwise()), "no_positives")
    assert finding.severity == "error" and "`batches." in finding.message
    assert codes(found(table, made), "error") == []


def test_few_positives_are_a_warning():
    made = recipe(batches={"batch_size": 20, "sampler": "random"})
    finding = the(found(table_of(*[4] * 40), made, pairwise()), "few_positives")
    assert "'random'" in finding.message and "m_per_class" in finding.remedy
    assert codes(found(table_of(40, 40), made, pairwise())) == []


def test_a_window_longer_than_an_epoch_is_told():
    made = recipe(train={"gradient_accumulation_steps": 5})
    assert "an epoch has 4 batches" in the(found(table_of(*[8] * 6), made), "long_window").message
    assert codes(found(table_of(*[8] * 6), recipe(train={"gradient_accumulation_steps": 4}))) == []
