"""Files of embeddings: exact, whole, without pickles."""

import numpy as np
import pytest

import kinfold
from kinfold.embeddings import EmbeddingTable, read_embeddings
from kinfold.errors import DataError, ShapeError


def example(label, **columns) -> EmbeddingTable:
    return EmbeddingTable(np.random.default_rng(0).normal(size=(len(label), 3)).astype(np.float32), tuple(label), **columns)


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
@pytest.mark.parametrize("label", [["a", "b", "ä"], ["01", "1", "001"], [1, 2, 3], [2**53, 2**53 + 1, -5]])
def test_what_is_written_is_read(tmp_path, suffix, label):
    written = example(
        label,
        path=("x.jpg", "y z.jpg", "ü.jpg"),
        item=np.array([5, 6, 10**9]),
        split=("train", "test", "test"),
        levels={"family": ("f", "f", "g")},
        is_query=np.array([True, False, True]),
        is_gallery=np.array([False, True, True]),
    )
    written.save(tmp_path / f"e{suffix}")
    read = read_embeddings(tmp_path / f"e{suffix}")
    assert np.array_equal(read.embedding, written.embedding)
    assert (read.label, read.path, read.split, dict(read.levels)) == (written.label, written.path, written.split, written.levels)
    assert read.item.tolist() == written.item.tolist()
    assert read.is_query.tolist() == written.is_query.tolist()


def test_numbers_beyond_64_bits_stay_apart(tmp_path):
    example([2**70, 2**70 + 1, 2**70]).save(tmp_path / "e.npz")
    label = read_embeddings(tmp_path / "e.npz").label
    assert label[0] == label[2] != label[1]


def test_a_minimal_file_of_somebody_else_is_enough(tmp_path):
    np.savez(tmp_path / "theirs.npz", embedding=np.eye(4, dtype=np.float64), label=np.array([0, 0, 1, 1]))
    scores = kinfold.score_table(read_embeddings(tmp_path / "theirs.npz"))
    assert scores["label"].settings["n_queries"] == 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.npz", None, "is no file"),
        ("broken.npz", b"PK\x03\x04 nothing", "cannot be read"),
        ("empty.npz", b"", "cannot be read"),
        ("text.csv", b"a,b", "end in .npz or .parquet"),
        ("broken.parquet", b"PAR1", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name}.*{message}"):
        read_embeddings(tmp_path / name)


def test_a_pickle_is_not_executed(tmp_path):
    np.savez(tmp_path / "bad.npz", embedding=np.eye(2), label=np.array([{"a": 1}, "b"], dtype=object))
    with pytest.raises(DataError, match="cannot be read"):
        read_embeddings(tmp_path / "bad.npz")


def test_a_missing_column_is_named(tmp_path):
    np.savez(tmp_path / "x.npz", embeddings=np.eye(2), label=np.arange(2))
    with pytest.raises(DataError, match=r"no column embedding; it has embeddings, label"):
        read_embeddings(tmp_path / "x.npz")


def test_columns_must_fit():
    with pytest.raises(ShapeError, match="`path` has 1 rows, the embeddings have 2"):
        example(["a", "b"], path=("x",))


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "e.npz"
    example(["a", "b"]).save(file)
    before = file.read_bytes()
    with pytest.raises(DataError, match="mixes numbers and text"):
        example(["a", 1]).save(file)

    def dies(handle, **_):
        handle.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("numpy.savez", dies)
    with pytest.raises(OSError, match="disk full"):
        example(["c", "d"]).save(file)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["e.npz"]


def test_parquet_keeps_the_precision_and_refuses_ragged_lists(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    wide = EmbeddingTable(np.array([[1 / 3, 2.0], [0.1, 0.2]]), ("a", "b"))
    wide.save(tmp_path / "wide.parquet")
    assert np.array_equal(read_embeddings(tmp_path / "wide.parquet").embedding, wide.embedding)
    parquet.write_table(pa.table({"embedding": [[1.0, 2.0], [3.0]], "label": ["a", "b"]}), tmp_path / "ragged.parquet")
    with pytest.raises(DataError, match="one list of the same length in every row"):
        read_embeddings(tmp_path / "ragged.parquet")
