"""`kinfold hierarchy score`: the numbers of `score_hierarchy`, for each hierarchy that the levels form."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import kinfold
from kinfold.cli import app
from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.embeddings import EmbeddingTable

CLASSES = ("oak", "elm", "fly", "bee")
KIND = {"oak": "tree", "elm": "tree", "fly": "insect", "bee": "insect"}
SIZE = {"oak": "large", "elm": "large", "fly": "small", "bee": "large"}
LABEL = tuple(CLASSES[row % 4] for row in range(24))
X = np.random.default_rng(0).normal(size=(24, 5)).astype(np.float32)


def run(*arguments: object):
    return CliRunner().invoke(app, ["hierarchy", "score", *map(str, arguments)])


def found(*arguments: object) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["hierarchies"]


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    levels = {"kind": tuple(map(KIND.get, LABEL)), "size": tuple(map(SIZE.get, LABEL))}
    EmbeddingTable(X, LABEL, levels=levels).save(tmp_path / "crossing.npz")
    EmbeddingTable(X, LABEL).save(tmp_path / "plain.npz")
    Path("kinds.csv").write_text("child,parent\n" + "\n".join(f"{a},{b}" for a, b in KIND.items()), encoding="utf-8")
    return tmp_path


def test_levels_that_cross_are_scored_apart(place):
    scores = found("crossing.npz", "--ks", "1,3")
    assert list(scores) == ["label → kind", "label → size"]
    for level, groups in (("kind", KIND), ("size", SIZE)):
        tree = hierarchy_from_groups(CLASSES, {level: [groups[name] for name in CLASSES]})
        expected = kinfold.score_hierarchy(X, LABEL, tree, ks=(1, 3)).to_dict()
        assert scores[f"label → {level}"] == expected


def test_a_taxonomy_takes_the_place_of_the_levels(place):
    (scores,) = found("plain.npz", "--taxonomy", "kinds.csv", "--ks", "1").values()
    assert scores == found("crossing.npz", "--ks", "1")["label → kind"] | {
        "recall": scores["recall"],
        "n_skipped": scores["n_skipped"],
    }
    assert scores["recall"]["depth_0"] == found("crossing.npz", "--ks", "1")["label → kind"]["recall"]["kind"]


def test_queries_search_the_gallery_alone(place):
    is_query = np.arange(24) < 8
    EmbeddingTable(X, LABEL, levels={"kind": tuple(map(KIND.get, LABEL))}, is_query=is_query, is_gallery=~is_query).save(
        place / "sides.npz"
    )
    (scores,) = found("sides.npz", "--ks", "1").values()
    assert scores["n_queries"] == 8


def test_the_table_is_for_people(place):
    result = run("crossing.npz")
    assert result.exit_code == 0
    assert "crossing.npz, test: label → kind" in result.stdout
    assert "mistake severity" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plain.npz"], "name a taxonomy with --taxonomy FILE"),
        (["crossing.npz", "--ks", "one"], "--ks 'one': give whole numbers"),
        (["crossing.npz", "--ks", "0"], "0"),
        (["crossing.npz", "--split", "tests"], "did you mean `test`"),
        (["crossing.npz", "--taxonomy", "no.csv"], "no.csv"),
    ],
)
def test_mistakes_are_one_clear_error(place, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
