"""The file of values per query: what is in it comes back, and belongs to the right images."""

from dataclasses import replace

import numpy as np
import pytest

import kinfold
from kinfold.comparison.per_query import per_query_of, read_per_query, write_per_query
from kinfold.errors import ConfigError, DataError

PROTOCOL = {"levels": ["label", "kind"], "images": "ü"}


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos).of_split("test")


def scores_of(table):
    random = np.random.default_rng(0)
    pixels = random.normal(size=(len(table), 4)).astype(np.float32)
    from kinfold.measure import score_table
    from kinfold.records import Embedded

    torch = pytest.importorskip("torch")
    x = torch.from_numpy(pixels)
    item = torch.as_tensor(table.item)
    return score_table(kinfold.with_columns(table, Embedded(x, x, torch.as_tensor(table.class_index), item, item * 0)))


def test_what_is_written_is_read(table, tmp_path):
    scores = scores_of(table)
    write_per_query(tmp_path / "per_query_test.npz", per_query_of(scores, table, PROTOCOL))
    found = read_per_query(tmp_path / "per_query_test.npz")
    assert found.protocol == PROTOCOL
    assert list(found.levels) == ["label", "kind"]
    for level, kept in found.levels.items():
        assert set(kept.values) == set(scores[level].per_query)
        for name, values in kept.values.items():
            assert values.dtype == np.float32
            np.testing.assert_allclose(values, scores[level].per_query[name].numpy(), rtol=1e-6)
            assert abs(values.mean(dtype=np.float64) - scores[level].metrics[name]) < 1e-6
    labels = dict(zip(table.item.tolist(), table.label, strict=True))
    kept = found.levels["label"]
    assert [labels[item] for item in kept.query.tolist()] == kept.names[kept.group].tolist()


def test_queries_are_named_by_their_rows_in_the_whole_table_also_with_flags(table):
    n = len(table)
    flagged = replace(table, is_query=np.arange(n) % 2 == 1, is_gallery=np.arange(n) % 2 == 0)
    kept = per_query_of(scores_of(flagged), flagged, PROTOCOL).levels["label"]
    assert kept.query.tolist() == table.item[1::2].tolist()


def test_what_was_not_measured_is_named_with_what_was(table):
    kept = per_query_of(scores_of(table), table, PROTOCOL)
    with pytest.raises(ConfigError, match="metric 'map_at_x' was not measured: did you mean `map_at_r`"):
        kept.values_of("label", "map_at_x")
    with pytest.raises(ConfigError, match="level 'kin' was not measured: did you mean `kind`"):
        kept.values_of("kin", "map_at_r")


@pytest.mark.parametrize("content", [None, b"", b"nothing", b"PK\x03\x04 broken"])
def test_a_missing_or_broken_file_is_one_error(tmp_path, content):
    file = tmp_path / "per_query_test.npz"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=r"per_query_test\.npz (is missing|cannot be read)"):
        read_per_query(file)
