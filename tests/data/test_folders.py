import os

import pytest

from kinfold.data.read import read_table
from kinfold.errors import DataError


@pytest.fixture
def tree(tmp_path):
    def make(*paths):
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).touch()
        return tmp_path

    return make


def test_a_folder_per_class_is_sorted_and_all_train(tree):
    table = read_table(tree("wren/b.jpg", "wren/a.JPG", "owl/10.png", "owl/9.webp"))
    assert table.path == ("owl/10.png", "owl/9.webp", "wren/a.JPG", "wren/b.jpg")
    assert table.label == ("owl", "owl", "wren", "wren")
    assert set(table.split) == {"train"}
    assert table.levels == {}
    assert table.image_path(0).is_file()


def test_splits_above_the_classes(tree):
    table = read_table(tree("train/owl/a.jpg", "validation/wren/a.jpg", "test/gull/a.jpg"))
    assert dict(zip(table.label, table.split, strict=True)) == {"owl": "train", "wren": "val", "gull": "test"}


def test_nested_folders_become_levels_and_a_name_under_two_parents_is_two_classes(tree):
    table = read_table(tree("train/fruit/red/apple/1.jpg", "train/fruit/red/pear/2.jpg", "test/toy/red/apple/3.jpg"))
    assert table.classes == ("fruit/red/apple", "fruit/red/pear", "toy/red/apple")
    assert table.levels["level_1"] == ("toy/red", "fruit/red", "fruit/red")
    assert table.levels["level_2"] == ("toy", "fruit", "fruit")
    assert table.chain() == ("level_1", "level_2")


def test_hidden_files_are_skipped_and_other_files_are_counted(tree):
    table = read_table(
        tree("owl/a.jpg", "owl/._a.jpg", "owl/.DS_Store", "owl/notes.txt", "readme.md", "__MACOSX/owl/a.jpg", ".cache/x/b.jpg")
    )
    assert table.path == ("owl/a.jpg",)
    assert "no images: 2" in table.summary()


def test_a_single_images_folder_is_no_group(tree):
    table = read_table(tree("images/owl/a.jpg", "images/wren/a.jpg"))
    assert table.classes == ("owl", "wren")
    assert table.levels == {}


def test_class_folders_keep_leading_zeros_and_stay_text(tree):
    assert read_table(tree("001/a.jpg", "1/a.jpg", "2/a.jpg")).classes == ("001", "1", "2")


def test_a_folder_with_a_table_is_read_by_its_table(tree):
    folder = tree("owl/a.jpg")
    (folder / "table.csv").write_text("path,label\nowl/a.jpg,night\n")
    table = read_table(folder)
    assert table.label == ("night",)
    assert table.root == folder


def test_links_are_followed_but_not_in_circles(tree):
    folder = tree("data/owl/a.jpg")
    os.symlink(folder / "data" / "owl", folder / "data" / "owl" / "loop")
    assert read_table(folder / "data").path == ("owl/a.jpg",)


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        (["notes.txt"], "holds no image"),
        (["a.jpg", "b.jpg"], "'b.jpg' lies in no class folder|'a.jpg' lies in no class folder"),
        (["train/a.jpg"], "lies in no class folder"),
        (["owl/a.jpg", "owl/young/b.jpg"], "different depths"),
        (["train/owl/a.jpg", "extra/owl/b.jpg"], "'extra' beside `train`"),
    ],
)
def test_layouts_that_cannot_be_understood_show_the_expected_ones(tree, paths, reason):
    with pytest.raises(DataError, match=reason) as error:
        read_table(tree(*paths))
    assert "Expected: FOLDER/<class>/<image>" in str(error.value)


def test_a_root_beside_a_folder_of_images_is_refused(tree, tmp_path):
    with pytest.raises(DataError, match="leave `root` out"):
        read_table(tree("owl/a.jpg"), root=tmp_path)
