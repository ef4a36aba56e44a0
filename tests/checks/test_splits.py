import numpy as np
import pytest

from kinfold.checks.splits import split_findings
from kinfold.embeddings import EmbeddingTable
from kinfold.errors import DataError
from kinfold.measure import score_table
from tests.checks.pictures import plain_table


def found(*arguments, **columns) -> dict[str, tuple]:
    findings = split_findings(plain_table(*arguments, **columns))
    return {finding.code: (finding.severity, finding.rows) for finding in findings}


def test_a_clean_open_set_gives_one_note():
    (finding,) = split_findings(plain_table([1, 1, 2, 2, 3, 3], ["train"] * 4 + ["test"] * 2))
    assert (finding.code, finding.severity) == ("open_set", "note")
    assert finding.message == "test is an open set: none of its 1 class is trained on"


def test_a_closed_set_reminds_of_the_setting():
    (finding,) = split_findings(plain_table([1, 1, 2, 2] * 2, ["train"] * 4 + ["val"] * 4))
    assert (finding.code, finding.severity) == ("closed_set", "note")
    assert "allow_shared_classes = true" in finding.remedy


def test_classes_of_both_kinds_are_a_warning_that_names_them():
    (finding,) = split_findings(plain_table(["a", "a", "b", "b", "a", "a", "c", "c"], ["train"] * 4 + ["test"] * 4))
    assert (finding.code, finding.severity, finding.rows) == ("mixed_set", "warning", (4, 5))
    assert finding.message == "1 of the 2 classes of test are trained on, the others are not: 'a'"
    assert "allow_shared_classes" in finding.remedy


def test_lone_images_are_found_in_every_split():
    table = plain_table([1, 1, 2, 3, 3, 4, 5, 5, 6], ["train"] * 3 + ["val"] * 3 + ["test"] * 3)
    lone = [finding for finding in split_findings(table) if finding.code == "single_image_class"]
    assert [(finding.severity, finding.rows) for finding in lone] == [("warning", (2,)), ("warning", (5,)), ("warning", (8,))]
    assert lone[0].message == "1 class of 2 in train has a single image: 2"
    assert lone[2].message == "1 query of 3 in test have nothing to find, in 1 class: 6"


@pytest.mark.parametrize("seed", range(20))
def test_queries_with_nothing_to_find_are_those_that_the_evaluation_skips(seed):
    random = np.random.default_rng(seed)
    label = random.integers(0, 8, 14).tolist()
    query, gallery = (random.random(14) < share for share in (0.5, 0.6))
    table = plain_table(label, ["test"] * 14, is_query=query.tolist(), is_gallery=gallery.tolist())
    lone = {finding.code: finding.rows for finding in split_findings(table)}.get("single_image_class", ())
    x = random.normal(size=(14, 3)).astype(np.float32)
    try:
        scores = score_table(EmbeddingTable(x, tuple(label), is_query=query, is_gallery=gallery))["label"]
    except DataError:  # no query has anything to find
        assert list(lone) == np.flatnonzero(query).tolist()
    else:
        assert list(lone) == np.flatnonzero(query)[scores.skipped.numpy()].tolist()


def test_rows_that_are_neither_query_nor_gallery_are_told_but_not_in_train():
    flags = {"is_query": [0, 0, 1, 0, 0], "is_gallery": [0, 0, 0, 1, 0]}
    assert found([1, 1, 2, 2, 2], ["train"] * 2 + ["test"] * 3, **flags) == {
        "unused_rows": ("warning", (4,)),
        "open_set": ("note", ()),
    }


def test_a_split_without_queries_falls_back_and_says_so():
    flags = {"is_query": [0, 0, 0, 0], "is_gallery": [0, 0, 1, 1]}
    assert found([1, 1, 2, 2], ["train"] * 2 + ["test"] * 2, **flags)["no_protocol"] == ("warning", ())


def test_without_queries_every_image_searches_and_lone_ones_find_nothing():
    flags = {"is_query": [0, 0, 0, 0, 0], "is_gallery": [0, 0, 1, 1, 0]}
    assert found([1, 1, 2, 2, 3], ["train"] * 2 + ["test"] * 3, **flags)["single_image_class"] == ("warning", (4,))


def test_a_table_of_one_split_is_noted():
    (train,) = split_findings(plain_table([1, 1]))
    (test,) = split_findings(plain_table([1, 1], ["test"] * 2))
    assert train.code == test.code == "one_split"
    assert "nothing to measure on" in train.message and "nothing to train on" in test.message


def test_classes_of_very_different_size_are_noted():
    (*_, finding) = split_findings(plain_table(["rare"] * 2 + ["often"] * 40 + ["some"] * 5))
    assert (finding.code, finding.severity) == ("unbalanced_classes", "note")
    assert finding.message == "the classes of train have 2 ('rare') to 40 images ('often'), 5 in the middle"
    assert "unbalanced_classes" not in found(["rare"] * 2 + ["often"] * 39)


def test_an_empty_table_gives_nothing():
    assert split_findings(plain_table([1]).subset([])) == []
