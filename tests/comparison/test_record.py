"""The record of a finished experiment."""

import pytest

from kinfold.comparison.record import Record, read_record, record_file, write_record
from kinfold.errors import DataError

RECORD = Record("ab", {"seed": 1}, "test", {"ks": [1]}, {"label": {"map_at_r": 0.5}}, 3.5, resumed=False, n_steps=7)


def test_a_record_comes_back_and_none_means_not_finished(tmp_path):
    assert read_record(tmp_path) is None
    write_record(tmp_path, RECORD)
    assert read_record(tmp_path) == RECORD


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 9}', '{"version": 1, "identity": 3, "more": 2}'])
def test_a_broken_record_says_what_to_do(tmp_path, text):
    record_file(tmp_path).write_text(text)
    with pytest.raises(DataError, match=r"record\.json cannot be read .* delete it to measure again"):
        read_record(tmp_path)
