"""The groups of hierarchical batches, judged from their sizes, against what the sampler then draws."""

import numpy as np
import pytest

import kinfold
from kinfold.checks.class_groups import class_group_findings
from kinfold.data.samplers import HierarchicalSampler
from kinfold.recipe import BatchSettings
from tests.checks.tiny import codes, the


def table_of(*n_classes, n_images=4):
    """Return a table of groups with so many classes, in the level `family`."""
    group = [number for number, n in enumerate(n_classes) for _ in range(n)]
    rows = [(label, number) for label, number in enumerate(group) for _ in range(n_images)]
    columns = {"path": [f"{row}.png" for row in range(len(rows))], "label": [label for label, _ in rows]}
    return kinfold.read_table({**columns, "label.family": [f"family {number}" for _, number in rows]})


def batches(**changes):
    small = {"sampler": "hierarchical", "level": "family", "batch_size": 16, "images_per_class": 2, "classes_per_group": 4}
    return BatchSettings(**{**small, **changes})


def times_as_often(table, made, chosen):
    """Return how often the chosen classes are shown, relative to the others."""
    how = {"m": made.images_per_class, "classes_per_group": made.classes_per_group, "batch_size": made.batch_size}
    sampler = HierarchicalSampler(table.class_index, table.level_codes("family"), **how)
    shown = np.zeros(table.n_classes)
    for epoch in range(20):
        for rows in sampler.epoch(epoch):
            shown[np.unique(table.class_index[rows])] += 1
    return shown[chosen].mean() / shown[~chosen].mean()


def told(finding):
    """Return the number before the word `times`."""
    words = finding.message.split()
    return float(words[words.index("times") - 1])


def test_groups_with_near_and_far_classes_are_healthy():
    assert class_group_findings(batches(), table_of(4, 4, 4, 4)) == []
    assert class_group_findings(batches(), table_of(1, 1, 2, 3, 9)) == []


def test_other_samplers_have_no_groups_to_judge():
    assert class_group_findings(BatchSettings(batch_size=6), table_of(4)) == []


def test_a_level_with_one_group_has_nothing_far():
    assert "all 8 training classes" in the(class_group_findings(batches(), table_of(8)), "no_far_classes").message


def test_a_level_with_a_group_for_each_class_has_nothing_near():
    assert "each of the 8" in the(class_group_findings(batches(), table_of(*[1] * 8)), "no_near_classes").message


def test_few_classes_with_a_near_one_are_told_with_how_often_they_come():
    table, made = table_of(*[1] * 40, 2), batches()
    finding = the(class_group_findings(made, table), "few_near_classes")
    assert "2 of 42 training classes share a group of level `family` with another" in finding.message
    often = times_as_often(table, made, np.arange(42) >= 40)
    assert told(finding) == pytest.approx(often, rel=0.05)
    assert told(finding) == pytest.approx(6.7)


def test_few_classes_outside_the_largest_group_are_told_with_how_often_they_come():
    table, made = table_of(60, 1, 1), batches()
    finding = the(class_group_findings(made, table), "few_far_classes")
    assert "2 of 62 training classes are outside the largest group" in finding.message
    assert told(finding) == pytest.approx(times_as_often(table, made, np.arange(62) >= 60), rel=0.05)


@pytest.mark.parametrize(("batch_size", "code", "words"), [(20, "uneven_batch", "16 or 24"), (8, "few_groups", "16 or more")])
def test_batches_that_do_not_go_round_are_told(batch_size, code, words):
    found = class_group_findings(batches(batch_size=batch_size), table_of(4, 4, 4, 4, 4))
    assert codes(found) == [code]
    assert words in the(found, code).remedy
