"""Writes are whole or did not happen."""

import pytest

from kinfold.atomic import atomic_folder, atomic_path, write_text


class Dies(Exception):
    pass


def test_a_file_is_replaced_whole(tmp_path):
    write_text(tmp_path / "deep" / "a.txt", "one")
    write_text(tmp_path / "deep" / "a.txt", "two")
    assert (tmp_path / "deep" / "a.txt").read_text() == "two"
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_a_write_that_dies_leaves_the_old_file_and_no_litter(tmp_path):
    write_text(tmp_path / "a.txt", "old")
    with pytest.raises(Dies), atomic_path(tmp_path / "a.txt") as temporary:
        temporary.write_text("half")
        raise Dies
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_is_replaced_whole(tmp_path):
    for names in (["a", "b"], ["c"]):
        with atomic_folder(tmp_path / "model") as temporary:
            for name in names:
                (temporary / name).write_text(name)
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["c"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_dies_leaves_the_old_one(tmp_path):
    with atomic_folder(tmp_path / "model") as temporary:
        (temporary / "old").write_text("old")
    with pytest.raises(Dies), atomic_folder(tmp_path / "model") as temporary:
        (temporary / "new").write_text("new")
        raise Dies
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
