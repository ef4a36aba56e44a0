"""`kinfold hierarchy show | fit | compare`, and what `kinfold train` says of learned groups."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import kinfold
from kinfold.cli import app
from kinfold.embeddings import EmbeddingTable
from kinfold.fitted_hierarchy import fit_hierarchy
from tests.test_learned_groups import FIRST, SECOND, hpl, write_run

HPL = ["objective.name=hpl", "objective.coarse_sizes=[3,2]", "objective.refresh_every=1", "train.epochs=2"]
FAST = ["model.trunk=convnet", "model.dim=16", "data.size=24", "batches.batch_size=12", "evaluation.metrics=['recall_at_1']"]


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def kinfold_json(*arguments: object):
    result = run("hierarchy", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def flat(text: str) -> str:
    return re.sub(r"[\s│]+", " ", text)


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """Work in a folder with a run written by hand, a table whose levels cross, and a taxonomy."""
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "run", FIRST, SECOND, config=hpl())
    lines = ["path,label,label.kind,label.size"]
    for number, (kind, size) in enumerate(zip("abbba", "sstst", strict=True)):
        lines += [f"{number}{copy}.png,class {number},{kind},{size}" for copy in "xy"]
    lines.append("far.png,far,a,t")
    Path("table.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    taxonomy = [f"class {number},kind {kind},all" for number, kind in enumerate("abbba")]
    Path("taxonomy.csv").write_text("\n".join(["label,kind,whole", *taxonomy]) + "\n", encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def trained(tmp_path_factory, tiny_photos) -> Path:
    """Return a folder with a run, `run`, that learned groups of the six training classes."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "tiny.toml").write_text("")
    arguments = [folder / "tiny.toml", f"data.root={tiny_photos}", f"run={folder / 'run'}", *HPL, *FAST]
    result = run("train", *arguments)
    assert result.exit_code == 0, result.output
    (folder / "train.out").write_text(result.stdout)
    (folder / "again.json").write_text(run("train", *arguments, "--json").stdout)
    return folder


def test_a_run_shows_its_groups_as_a_tree_with_sizes(place):
    shown = flat(run("hierarchy", "show", "run").stdout)
    assert "run: learned hierarchy" in shown
    assert "5 classes (level_2 → level_1 → class)" in shown
    assert "2 (class 1, class 2, +1): 3 classes" in shown
    assert "level_1 3 1.7 3: 2 (class 1, class 2, +1) 1: 3 (class 4)" in shown


def test_the_json_of_a_run_is_its_hierarchy(place):
    (tree,) = kinfold_json("show", "run")["hierarchies"]
    learned = kinfold.learned_hierarchy("run")
    assert tree["classes"] == list(learned.classes)
    assert tree["groups"] == {name: list(groups) for name, groups in learned.columns().items()}
    assert [(level["name"], level["n_groups"]) for level in tree["levels"]] == [("level_1", 3), ("level_2", 2)]
    assert tree["levels"][0]["largest"] == ["2 (class 1, class 2, +1)", 3]


def test_moves_are_shown_epoch_by_epoch(place):
    moves = kinfold_json("show", "run", "--moves")["moves"]
    assert [(m["epoch"], m["level"], m["n_moved"]) for m in moves] == [
        (0, "level_1", None),
        (0, "level_2", None),
        (1, "level_1", 1),
        (1, "level_2", 2),
    ]
    shown = flat(run("hierarchy", "show", "run", "--moves").stdout)
    assert "1 10 level_1 – 1 of 4" in shown and "2 20 level_2 2 0 of 2" in shown


def test_levels_of_a_table_that_cross_are_separate_trees(place):
    found = kinfold_json("show", "table.csv")
    assert [[level["name"] for level in tree["levels"]] for tree in found["hierarchies"]] == [["kind"], ["size"]]
    shown = flat(run("hierarchy", "show", "table.csv").stdout)
    assert "2 trees: levels of different trees cross" in shown and "6 classes, 11 images" in shown
    assert "a: 3 classes, 5 images" in shown
    only = kinfold_json("show", place, "--level", "size")
    assert [[level["name"] for level in tree["levels"]] for tree in only["hierarchies"]] == [["size"]]


def test_the_demos_characters_are_a_table_too(place, monkeypatch):
    monkeypatch.setattr("kinfold.commands.groupings.build_table", lambda data: kinfold.read_table("table.csv"))
    assert kinfold_json("show", "kinfold:glyphs", "--level", "kind")["hierarchies"][0]["n_classes"] == 6


def test_a_taxonomy_is_one_tree(place):
    found = kinfold_json("show", "taxonomy.csv")
    assert found["kind"] == "taxonomy"
    assert [level["name"] for level in found["hierarchies"][0]["levels"]] == ["kind", "whole"]


def test_groups_are_compared_over_the_classes_that_both_have(place):
    found = kinfold_json("compare", "run", "table.csv", "--permutations", "50")
    assert (found["n_classes"], found["left_out"]) == (5, [0, 1])
    by_pair = {(row["level"], row["other"]): row for row in found["levels"]}
    assert list(by_pair) == [("level_1", "kind"), ("level_1", "size"), ("level_2", "kind"), ("level_2", "size")]
    assert by_pair["level_2", "kind"]["ami"] == pytest.approx(1)
    assert by_pair["level_2", "kind"]["n_permutations"] == 50
    assert by_pair["level_1", "size"]["other_groups"] == 2
    shown = flat(run("hierarchy", "compare", "run", "table.csv").stdout)
    assert "left out: 1 class that only table.csv has" in shown and "only run has" not in shown
    assert "run (learned hierarchy) with table.csv (levels of a table)" in shown


def test_a_run_is_compared_with_a_taxonomy_and_with_itself(place):
    found = kinfold_json("compare", "taxonomy.csv", "run", "--permutations", "20")
    assert [(row["level"], row["other"], round(row["ami"], 6)) for row in found["levels"]][1] == ("kind", "level_2", 1)
    same = kinfold_json("compare", "run", "run", "--permutations", "20")
    assert [row["ami"] for row in same["levels"] if row["level"] == row["other"]] == pytest.approx([1, 1])


def test_fitted_groups_are_written_and_can_be_put_onto_the_table(place):
    random = np.random.default_rng(0)
    label = [f"class {number}" for number in range(5)] * 3
    centre = {name: 5 * random.normal(size=6) for name in label}
    x = np.stack([centre[name] + 0.1 * random.normal(size=6) for name in label]).astype(np.float32)
    kind = dict(zip(sorted(set(label)), "abbba", strict=True))
    levels = {"kind": tuple(kind[name] for name in label)}
    EmbeddingTable(x, tuple(label), split=("train",) * 15, levels=levels).save("all.npz")
    found = kinfold_json("fit", "all.npz", "--sizes", "3,2", "--out", "fitted.csv")
    expected = fit_hierarchy(x, label, (3, 2))
    assert found["groups"] == {name: list(groups) for name, groups in expected.columns().items()}
    assert [(row["level"], row["other"], row["groups"]) for row in found["agreement"]] == [
        ("level_1", "kind", 3),
        ("level_2", "kind", 2),
    ]
    assert kinfold.read_hierarchy("fitted.csv").columns() == expected.columns()
    same = kinfold_json("compare", "fitted.csv", "taxonomy.csv", "--permutations", "20")
    assert same["n_classes"] == 5 and same["levels"][0]["ami"] == pytest.approx(found["agreement"][0]["ami"])
    shown = flat(run("hierarchy", "fit", "all.npz", "--sizes", "3").stdout)
    assert "5 classes (level_1 → class)" in shown and "agreement with given levels" in shown


def test_training_says_how_learned_groups_agree_with_given_ones(trained):
    shown = flat((trained / "train.out").read_text())
    assert "the run's groups of training classes with the levels of the table" in shown and "level_2 (2) kind (2)" in shown
    again = json.loads((trained / "again.json").read_text())
    kept = json.loads((trained / "run" / "metrics.json").read_text())["hierarchy"]
    assert again["hierarchy"] == kept and {row["level"] for row in kept} == {"level_1", "level_2"}
    assert {row["n"] for row in kept} == {6}


def test_a_trained_run_is_shown_with_names_counts_and_pictures(trained, monkeypatch):
    monkeypatch.chdir(trained)
    result = run("hierarchy", "show", "run", "--moves", "--exemplars", "3", "--out", "typical.png", "--picture", "tree.png")
    assert result.exit_code == 0, result.stderr
    assert "6 classes, 48 images" in result.stdout and "class 3: 8 images" in result.stdout
    for name in ("typical.png", "tree.png"):
        assert Path(name).read_bytes().startswith(b"\x89PNG") and f"wrote {name}" in result.stderr


def test_a_run_is_grouped_by_its_own_embeddings(trained, monkeypatch):
    monkeypatch.chdir(trained)
    found = kinfold_json("fit", "run", "--sizes", "2", "--out", "groups.csv", "--picture", "groups.png")
    assert found["n_classes"] == 6 and [row["other"] for row in found["agreement"]] == ["kind"]
    assert kinfold_json("compare", "run", "groups.csv")["n_classes"] == 6
    assert Path("groups.png").is_file()


def test_training_without_groups_says_nothing_of_them(place, tiny_photos):
    Path("plain.toml").write_text("[train]\nepochs = 1\n")
    result = run("train", "plain.toml", f"data.root={tiny_photos}", *FAST, "--json")
    assert result.exit_code == 0 and "hierarchy" not in json.loads(result.stdout)
    refused = run("hierarchy", "show", "runs/plain")
    assert refused.exit_code == 2 and "has learned no hierarchy" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shw", "run"], "did you mean `show`"),
        (["show", "nowhere"], "nowhere does not exist"),
        (["show", "run", "--level", "level_3"], "did you mean `level_"),
        (["show", "table.csv", "--moves"], "is no run"),
        (["show", "run", "--exemplars", "3"], "--exemplars N and --out FILE go together"),
        (["show", "run", "--exemplars", "3", "--out", "x.png"], "training images cannot be found"),
        (["show", "table.csv", "--picture", "x.png"], "cross, one picture shows one tree"),
        (["compare", "run", "strange.csv"], "share no class"),
        (["fit", "all.npz", "--sizes", "3,x"], "give whole numbers"),
        (["fit", "all.npz", "--sizes", "2,3"], "give falling numbers"),
        (["fit", "all.npz", "--sizes", "3"], "all.npz is no file"),
        (["fit", "all.npz", "--sizes", "3", "--out", "x.png"], "the name must end in .csv"),
        (["fit", "all.npz", "--sizes", "3", "--table", "table.csv"], "--table is for models"),
        (["fit", "convnet", "--sizes", "3"], "say which images to embed with --table"),
        (["fit", "all.npz", "--sizes", "3", "--split", "tain"], "did you mean `train`"),
        (["fit", "all.npz", "--sizes", "3", "--method", "kmean"], "did you mean `kmeans`"),
    ],
)
def test_mistakes_get_one_line_and_exit_code_2(place, arguments, message):
    Path("strange.csv").write_text("label,kind\nowl,bird\nfox,beast\n")
    result = run("hierarchy", *arguments)
    assert result.exit_code == 2
    assert message in flat(result.stderr)
    assert result.stdout == ""
