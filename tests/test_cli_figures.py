"""`kinfold figures` as a person types it: two runs on the same images, their numbers, pictures and errors."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from kinfold.cli import app
from kinfold.commands.figure_data import numbers_of, read_compared
from kinfold.data.read import read_table
from kinfold.embeddings import EmbeddingTable
from kinfold.evaluation.outside import outside_share
from kinfold.measure import score_table

RUNS = ("runs/base", "runs/hpl")


def kinfold(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def embeddings_of(table, *, spread: float) -> EmbeddingTable:
    """Return embeddings in which classes of one kind lie near each other, the more the smaller `spread`."""
    random = np.random.default_rng(0)
    kind = random.normal(size=(len(table.level_names("kind")), 8))[table.level_codes("kind")]
    own = random.normal(size=(table.n_classes, 8))[table.class_index]
    x = kind + spread * own + 0.7 * spread * random.normal(size=(len(table), 8))
    return EmbeddingTable(x.astype(np.float32), table.label, table.path, np.asarray(table.item), table.split, dict(table.levels))


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """Return a folder with 6 classes of 6 small pictures, of which 4 are tested on, and two runs that kept their embeddings."""
    monkeypatch.chdir(tmp_path)
    lines = ["path,label,label.kind,split"]
    for number in range(6):
        for copy in range(6):
            name = f"images/{number}_{copy}.png"
            Path("images").mkdir(exist_ok=True)
            Image.new("RGB", (20, 20), (40 * number, 40 * copy, 99)).save(name)
            lines.append(f"{name},class {number},kind {number // 2},{'train' if number < 2 else 'test'}")
    Path("table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    test = read_table(tmp_path).of_split("test")
    for run, spread in zip(RUNS, (1.2, 0.5), strict=True):
        Path(run).mkdir(parents=True)
        Path(run, "environment.json").write_text("{}", encoding="utf-8")
        Path(run, "config.json").write_text(json.dumps({"data": {"root": str(tmp_path)}}), encoding="utf-8")
        embeddings_of(test, spread=spread).save(Path(run, "embeddings_test.npz"))
    return tmp_path


def test_two_runs_are_drawn_side_by_side_with_the_numbers_of_the_library(place):
    result = kinfold("figures", *RUNS, "--out", "new/figures", "--n-queries", "2", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["split"], found["level"]) == ("test", "kind")
    test = read_table(place).of_split("test")
    for line, name, spread in zip(found["models"], ("base", "hpl"), (1.2, 0.5), strict=True):
        rows = embeddings_of(test, spread=spread)
        outside = outside_share(rows.embedding, np.array(rows.label), np.array(rows.levels["kind"]), k=10)
        scores = score_table(rows, metrics=["recall_at_1"])
        assert line == {
            "name": name,
            "recall_at_1": {level: scores[level].metrics["recall_at_1"] for level in ("label", "kind")},
            "outside_share": outside.share,
            "outside_chance": outside.chance,
        }
    assert found["files"][:2] == [f"new/figures/{kind}_test.png" for kind in ("map", "neighbours")]
    n_turned = {
        kind: int(n)
        for kind, n in re.findall(r"^(wins|losses): .*? first four and \w+ finds it first \((\d+) of 24\)$", result.stderr, re.M)
    }
    assert list(n_turned) == ["wins", "losses"]
    assert found["files"][2:] == [f"new/figures/{kind}_test.png" for kind, n in n_turned.items() if n]
    for file in found["files"]:
        with Image.open(file) as image:
            assert min(image.size) > 200
    changes = found["neighbours"]
    assert changes["queries"] == 24
    assert 0 < changes["better"] <= changes["differ"] <= 24
    assert "nearest differ between base and hpl" in result.stderr


def test_people_read_a_table_and_the_files(place):
    result = kinfold("figures", *RUNS, "--kind", "neighbours", "--n-queries", "1")
    assert result.exit_code == 0, result.stderr
    text = flat(result.stdout)
    assert "Recall@1 kind" in text
    assert "hpl against base, 24 queries" in text
    assert "wrote figures/neighbours_test.png" in text
    assert not Path("figures/map_test.png").exists()


def test_queries_can_be_named_by_row_or_path(place):
    result = kinfold("figures", "runs/base", "--kind", "neighbours", "--queries", "12,3_4.png", "--json")
    assert result.exit_code == 0, result.stderr
    assert "neighbours: named by hand (2 of 24)" in result.stderr
    for name, reason in (("0", "there is no such image"), ("9_9.png", "there is no such image"), ("images", "no such image")):
        result = kinfold("figures", "runs/base", "--kind", "neighbours", "--queries", name)
        assert result.exit_code == 2
        assert f"--queries '{name}'" in result.stderr and reason in result.stderr


def test_a_table_without_levels_is_drawn_by_class_without_outlines(place):
    rows = embeddings_of(read_table(place).of_split("test"), spread=1.0)
    EmbeddingTable(rows.embedding, rows.label).save("plain.npz")
    result = kinfold("figures", "plain.npz", "--max-images", "12", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["level"], found["files"], found["neighbours"]) == (None, ["figures/map_test.png"], None)
    assert "no coarser level" in result.stderr
    assert "no pictures of neighbours" in result.stderr


def test_queries_search_the_gallery_where_rows_are_marked(place):
    rows = embeddings_of(read_table(place).of_split("test"), spread=1.0)
    is_query = np.arange(24) % 3 == 0
    marked = EmbeddingTable(
        rows.embedding, rows.label, levels=rows.levels, is_query=is_query, is_gallery=~is_query, item=np.arange(24)
    )
    marked.save("marked.npz")
    (line,) = numbers_of(read_compared(["marked.npz"], split="test", level=None, table=None, workers=0, device=None))
    label, kind = np.array(rows.label), np.array(rows.levels["kind"])
    sides = {"gallery": rows.embedding[~is_query], "gallery_label": label[~is_query], "gallery_group": kind[~is_query]}
    expected = outside_share(rows.embedding[is_query], label[is_query], kind[is_query], k=10, **sides)
    assert line["outside_share"] == expected.share


def test_what_cannot_be_compared_is_refused(place):
    rows = embeddings_of(read_table(place).of_split("test"), spread=1.0)
    rows.subset(np.arange(20)).save(Path(RUNS[1], "embeddings_test.npz"))
    result = kinfold("figures", *RUNS)
    assert result.exit_code == 2
    assert "runs/base (24 images) and runs/hpl (20) were measured on different test sets: the number of images" in result.stderr
    rows.subset(np.arange(24)[::-1].copy()).save(Path(RUNS[1], "embeddings_test.npz"))
    assert "different test sets: the images differ" in kinfold("figures", *RUNS).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("runs/base", "--level", "kinds"), "--level 'kinds': did you mean `kind`?"),
        (("runs/base", "--kind", "maps"), "--kind 'maps': did you mean `map`?"),
        (("runs/base", "--split", "tests"), "--split 'tests': did you mean `test`?"),
        (("runs/base", "runs/base"), "a run is named twice"),
        (("runs/base", "--split", "train"), "runs/base is not finished"),
        (("runs/none",), "runs/none"),
    ],
)
def test_mistakes_get_one_clear_message(place, arguments, message):
    result = kinfold("figures", *arguments)
    assert result.exit_code == 2
    assert message in flat(result.stderr)
