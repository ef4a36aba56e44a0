"""What must be equal before two numbers may be compared."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

import kinfold
from kinfold.comparison.protocol import check_same_protocol, protocol_of, rows_digest
from kinfold.config import EvaluationSettings
from kinfold.data.table import Box
from kinfold.errors import ConfigError


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


def protocol(table, *, levels=("label",), n_evaluations=0, **settings):
    return protocol_of(table, EvaluationSettings(**settings), levels=levels, n_evaluations=n_evaluations)


def test_the_same_images_elsewhere_are_the_same_protocol(table, tiny_photos, tmp_path):
    shutil.copytree(tiny_photos, tmp_path / "copy")
    assert protocol(kinfold.read_table(tmp_path / "copy")) == protocol(table)
    absolute = replace(table, path=tuple(str(table.image_path(row)) for row in range(len(table))))
    assert rows_digest(absolute) == rows_digest(table)


def test_each_change_of_the_images_is_noticed(table):
    n = len(table)
    changed = {
        "a row less": table.subset(np.arange(n - 1)),
        "another order": table.subset(np.arange(n)[::-1]),
        "another label": replace(table, label=("other", *table.label[1:])),
        "a number for a text": replace(table, label=(0, *table.label[1:])),
        "another path": replace(table, path=("other.png", *table.path[1:])),
        "boxes": replace(table, boxes=(Box(0, 9, 0, 9),) + (None,) * (n - 1)),
        "flags": replace(table, is_query=np.ones(n, bool), is_gallery=np.ones(n, bool)),
        "other flags": replace(table, is_query=np.arange(n) > 0, is_gallery=np.ones(n, bool)),
    }
    digests = [rows_digest(each) for each in (table, *changed.values())]
    assert len(set(digests)) == len(digests)


def test_levels_count_where_they_are_measured(table):
    other = replace(table, levels={"kind": ("x",) * len(table)})
    assert protocol(table) == protocol(other)
    assert protocol(table, levels=("label", "kind"))["images"] != protocol(other, levels=("label", "kind"))["images"]


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"similarity": "dot"}, "similarity"),
        ({"ks": (1, 2)}, "ks"),
        ({"split": "train"}, "split"),
        ({"levels": ("kind",)}, "levels"),
        ({"n_evaluations": 2}, "selection"),
    ],
)
def test_each_way_of_measuring_is_a_key(table, change, key):
    one, other = protocol(table), protocol(table, **change)
    assert one[key] != other[key]
    with pytest.raises(ConfigError, match=rf"a and b cannot be compared: they differ in .*`{key}`"):
        check_same_protocol({"a": one, "same": dict(one), "b": other})


def test_training_rows_and_held_out_rows_count(table):
    held = kinfold.hold_out_classes(table, every=3)
    differing = {key for key, value in protocol(table).items() if protocol(held)[key] != value}
    assert differing == {"training", "held_out"}, "the test images are the same"


def test_one_validation_keeps_the_last_epoch(table):
    assert protocol(table, n_evaluations=1) == protocol(table, n_evaluations=0)


def test_the_message_is_short(table):
    with pytest.raises(ConfigError) as caught:
        check_same_protocol({"a": protocol(table), "b": protocol(table.subset(np.arange(50)))})
    assert "16 images" in str(caught.value) and "2 images" in str(caught.value) and len(str(caught.value)) < 400
