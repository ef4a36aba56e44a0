"""Rows under keys: added only, whole or not there, shared between processes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinfold.models.shards as module
from kinfold.models.shards import Shards


def key(number: int) -> bytes:
    return number.to_bytes(16, "little")


def rows(*numbers: int) -> np.ndarray:
    return np.array([[number, -number] for number in numbers], dtype=np.float32)


def test_what_was_added_is_found_by_another_reader_in_the_order_asked_for(tmp_path):
    writer, reader = Shards(tmp_path / "a"), Shards(tmp_path / "a")
    assert reader.missing([key(1), key(2)]) == [0, 1]
    writer.add([key(1), key(2)], rows(1, 2))
    writer.add([key(3)], rows(3))
    wanted = [key(3), key(1), key(3), key(2)]
    assert reader.missing([*wanted, key(9)]) == [4]
    assert np.array_equal(reader.stored(wanted).take(np.array([0, 1, 2, 3, 0])), rows(3, 1, 3, 2, 3))
    assert reader.n_rows() == 3


def test_a_key_that_is_asked_for_twice_is_missing_once(tmp_path):
    assert Shards(tmp_path).missing([key(5), key(6), key(5)]) == [0, 1]


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6), max_size=6), st.lists(st.integers(0, 30), max_size=12))
def test_it_behaves_as_a_dictionary_whatever_is_added(tmp_path_factory, added, asked):
    shards, truth = Shards(tmp_path_factory.mktemp("shards")), {}
    for numbers in added:
        shards.add([key(number) for number in numbers], rows(*numbers))
        truth.update({number: number for number in numbers})
    missing = {asked[place] for place in shards.missing([key(number) for number in asked])}
    assert missing == {number for number in asked if number not in truth}
    there = [number for number in asked if number in truth]
    if there:
        found = shards.stored([key(number) for number in there]).take(np.arange(len(there)))
        assert np.array_equal(found, rows(*there))


@pytest.mark.parametrize("damage", ["no keys", "no values", "cut values", "cut keys"])
def test_a_half_written_file_does_not_count(tmp_path, damage):
    Shards(tmp_path).add([key(1), key(2)], rows(1, 2))
    keys, values = next(tmp_path.glob("*.keys.npy")), next(tmp_path.glob("*.values.npy"))
    {
        "no keys": keys.unlink,
        "no values": values.unlink,
        "cut values": lambda: values.write_bytes(values.read_bytes()[:-4]),
        "cut keys": lambda: keys.write_bytes(keys.read_bytes()[:-4]),
    }[damage]()
    assert Shards(tmp_path).missing([key(1), key(2)]) == [0, 1]


def test_where_the_disk_is_full_rows_stay_in_memory(tmp_path, monkeypatch):
    def full(file: Path, array: np.ndarray) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_write", full)
    shards = Shards(tmp_path)
    with pytest.raises(OSError, match="No space"):
        shards.add([key(1)], rows(1))
    assert np.array_equal(shards.stored([key(1)]).take(np.array([0])), rows(1))
    assert Shards(tmp_path).missing([key(1)]) == [0]
    assert not list(tmp_path.iterdir())


def test_half_precision_is_read_as_float32(tmp_path):
    shards = Shards(tmp_path)
    shards.add([key(1)], rows(1).astype(np.float16))
    shards.missing([key(1)])
    assert shards.stored([key(1)]).take(np.array([0])).dtype == np.float32
