import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.data.read import read_table
from kinfold.data.table import Box, Table
from kinfold.errors import ConfigError, DataError, ShapeError


def birds(**columns):
    """Six images of four species, each its own family, in three orders."""
    return read_table(
        {
            "path": [f"{row}.jpg" for row in range(6)],
            "label": ["wren", "owl", "wren", "gull", "tern", "owl"],
            "label.order": ["song", "owls", "song", "shore", "shore", "owls"],
            "label.family": ["wrens", "owls", "wrens", "gulls", "terns", "owls"],
            "split": ["train", "train", "train", "test", "test", "val"],
            **columns,
        }
    )


def test_classes_are_sorted_and_numbered_densely():
    table = birds()
    assert table.classes == ("gull", "owl", "tern", "wren")
    assert table.class_index.tolist() == [3, 1, 3, 0, 2, 1]
    assert table.n_classes == 4
    assert len(table) == 6


def test_a_split_counts_its_own_classes_from_zero_and_keeps_item_numbers():
    test = birds().of_split("test")
    assert test.item.tolist() == [3, 4]
    assert test.classes == ("gull", "tern")
    assert test.class_index.tolist() == [0, 1]
    assert test.level_codes("order").tolist() == [0, 0]


@given(st.lists(st.booleans(), min_size=6, max_size=6), st.permutations(range(6)))
def test_masks_and_row_numbers_pick_the_same_rows_of_every_column(mask, order):
    flags = [True, False] * 3
    table = birds(
        is_query=flags, is_gallery=flags, camera=[1, 2, None, 1, 2, 3], x_1=[0] * 6, x_2=range(1, 7), y_1=[0] * 6, y_2=[5] * 6
    )
    kept = np.flatnonzero(mask)
    for picked, rows in ((table.subset(mask), kept), (table.subset(np.array(mask)), kept), (table.subset(order), order)):
        assert picked.item.tolist() == list(rows)
        for name in ("path", "label", "split", "camera", "boxes", "is_query", "is_gallery"):
            assert list(getattr(picked, name)) == [getattr(table, name)[row] for row in rows]
        assert list(picked.levels["family"]) == [table.levels["family"][row] for row in rows]


def test_a_subset_of_a_subset_still_knows_the_first_rows():
    assert birds().subset([5, 3, 1]).subset([2, 0]).item.tolist() == [1, 5]


def test_tensors_pick_rows_too_and_codes_become_tensors_without_a_warning():
    table = birds().subset(torch.tensor([4, 2]))
    assert torch.as_tensor(table.item).tolist() == [4, 2]
    assert torch.from_numpy(table.class_index).tolist() == [0, 1]


@pytest.mark.parametrize("rows", [[True], [6], [-1], [1, 1], [[1]], [0.5]])
def test_rows_that_are_no_rows_are_refused(rows):
    with pytest.raises(ShapeError, match=r"row|mask"):
        birds().subset(rows)


def test_an_empty_split_is_an_empty_table():
    empty = birds().of_split("train").of_split("test")
    assert len(empty) == 0
    assert empty.classes == ()
    assert empty.summary().startswith("0 images")


def test_levels_nest_into_a_chain_from_fine_to_coarse():
    table = birds()
    assert table.chain() == ("family", "order")
    assert table.nests("family", "order")
    assert not table.nests("order", "family")
    assert table.level_names("order") == ("owls", "shore", "song")


def test_crossing_levels_make_no_chain():
    cars = read_table({"path": list("abcd"), "label": [1, 2, 3, 4], "label.make": list("xxyy"), "label.body": list("stst")})
    assert cars.chain() == ()
    assert "levels make and body cross" in cars.summary()


def test_unknown_levels_and_splits_get_the_nearest_name():
    with pytest.raises(ConfigError, match="did you mean `family`"):
        birds().level_codes("famly")
    with pytest.raises(ConfigError, match="did you mean `train`"):
        birds().of_split("trian")


def test_shared_classes_are_found_and_refused_by_name():
    table = birds()
    assert table.shared_classes("train", "val") == ("owl",)
    table.check_disjoint()
    with pytest.raises(DataError, match="'owl'"):
        table.check_disjoint("train", "val")


def test_missing_files_are_named_with_the_root(tmp_path):
    (tmp_path / "a.jpg").touch()
    table = read_table({"path": ["a.jpg", "b.jpg"], "label": [1, 2]}, root=tmp_path)
    with pytest.raises(DataError, match=r"1 of 2 image files.*'b\.jpg'") as error:
        table.check_files()
    assert str(tmp_path) in str(error.value)
    table.subset([0]).check_files()


def test_paths_start_from_the_root_unless_absolute(tmp_path):
    table = read_table({"path": ["a/b.jpg", "/c/d.jpg"], "label": [1, 2]}, root=tmp_path)
    assert table.image_path(0) == tmp_path / "a" / "b.jpg"
    assert table.image_path(1) == Path("/c/d.jpg")


def test_the_summary_says_how_the_table_was_understood():
    text = birds(is_query=[0, 0, 0, 1, 0, 0], is_gallery=[0, 0, 0, 0, 1, 0], colour=[0] * 6).summary()
    for expected in (
        "6 images of 4 classes",
        "label: column `label`, text",
        "train: 3 images of 2 classes\n",
        "test: 2 images of 2 classes, 1 queries, 1 in the gallery, 0 neither",
        "val: 1 images of 1 classes, 0 queries, 0 in the gallery, 1 neither",
        "level family: 4 groups",
        "level order: 3 groups",
        "label → family → order",
        "ignored columns: `colour`",
        "overlap: 1 classes have images in both train and val: 'owl'",
    ):
        assert expected in text


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(ShapeError, match="`label` has 1"):
        Table(path=("a", "b"), label=("x",), split=("train", "train"), item=np.arange(2), root=Path())


def test_a_table_survives_pickling():
    table = birds()
    again = pickle.loads(pickle.dumps(table))
    assert again.label == table.label
    assert again.class_index.tolist() == table.class_index.tolist()
    assert again.summary() == table.summary()


def test_a_box_gives_its_corners_in_pillows_order():
    assert Box(x_1=1, x_2=3, y_1=2, y_2=4).corners == (1, 2, 3, 4)
