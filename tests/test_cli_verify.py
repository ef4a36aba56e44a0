"""`kinfold verify` as a person types it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from kinfold.cli import app
from kinfold.embeddings import EmbeddingTable
from kinfold.evaluation.threshold import fit_threshold
from kinfold.evaluation.verification import verification

SIZES = {"train": 40, "val": 90, "test": 100}


def kinfold(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def table(seed: int = 0, **columns) -> EmbeddingTable:
    """Return clustered embeddings whose splits share no class."""
    random = np.random.default_rng(seed)
    split = [name for name, n in SIZES.items() for _ in range(n)]
    label = [f"{name} {random.integers(6)}" for name in split]
    centre = {name: random.normal(size=8) for name in sorted(set(label))}
    x = np.stack([centre[name] for name in label]) + random.normal(size=(len(label), 8))
    return EmbeddingTable(x.astype(np.float32), tuple(label), split=tuple(split), **columns)


def part(embeddings: EmbeddingTable, split: str) -> EmbeddingTable:
    return embeddings.subset(np.array(embeddings.split) == split)


def pairs_of(embeddings: EmbeddingTable) -> dict:
    return {"item": embeddings.item, "is_query": embeddings.is_query, "is_gallery": embeddings.is_gallery}


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    table().save("all.npz")
    return tmp_path


def test_a_file_gives_what_the_library_gives(place):
    result = kinfold("verify", "all.npz", "--far", "0.01,0.1", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    val, test = (part(table(), split) for split in ("val", "test"))
    expected = verification(test.embedding, test.label, fars=(0.01, 0.1)).to_dict()
    assert expected.items() <= found.items()
    assert (found["split"], found["fitted_on"], found["not_fitted"]) == ("test", "val", [])
    goals = [{"far": 0.01}, {"far": 0.1}, {"eer": True}]
    for goal, shown in zip(goals, found["thresholds"], strict=True):
        threshold = fit_threshold(val.embedding, val.label, **goal)
        assert shown == {**threshold.to_dict(), "applied": threshold.apply(test.embedding, test.label).to_dict()}


def test_a_person_sees_both_sides_of_a_threshold(place):
    shown = flat(kinfold("verify", "all.npz", "--far", "0.01").stdout)
    for words in ("all.npz, test", "AUC", "EER", "TAR at FAR 1 %", "thresholds fitted on val, applied to test", "FAR <= 0.01"):
        assert words in shown
    assert "FAR val TAR val FAR test TAR test" in shown


def test_test_labels_move_the_rates_but_not_the_threshold(place):
    first = json.loads(kinfold("verify", "all.npz", "--json").stdout)
    label = list(table().label)
    label[-SIZES["test"] :] = np.random.default_rng(1).permutation(label[-SIZES["test"] :]).tolist()
    EmbeddingTable(table().embedding, tuple(label), split=table().split).save("all.npz")
    second = json.loads(kinfold("verify", "all.npz", "--json").stdout)
    assert first["auc"] != second["auc"]
    for one, other in zip(first["thresholds"], second["thresholds"], strict=True):
        assert one.pop("applied") != other.pop("applied")
        assert one == other


def test_without_held_out_rows_it_says_how_to_get_a_threshold(place):
    part(table(), "test").save("test.npz")
    result = kinfold("verify", "test.npz")
    assert result.exit_code == 0
    assert "AUC" in result.stdout
    assert "no row in split 'val' to fit one on. Hold out classes" in flat(result.stdout)
    assert "data.hold_out_every" in result.stdout and "thresholds fitted" not in result.stdout
    kept = json.loads(kinfold("verify", "test.npz", "--json").stdout)
    assert (kept["fitted_on"], kept["thresholds"], len(kept["not_fitted"])) == (None, [], 1)


def test_a_file_without_splits_is_measured_whole(place):
    whole = part(table(), "test")
    EmbeddingTable(whole.embedding, whole.label).save("plain.npz")
    kept = json.loads(kinfold("verify", "plain.npz", "--json").stdout)
    assert kept["auc"] == verification(whole.embedding, whole.label).auc
    assert kinfold("verify", "plain.npz", "--split", "test").exit_code == 2


def test_rates_that_too_few_pairs_cannot_show_are_said_on_both_sides(place):
    result = kinfold("verify", "all.npz", "--far", "1e-6,0.1")
    shown = flat(result.stdout)
    assert result.exit_code == 0
    assert "TAR at FAR 0.0001 %: not resolved: 1e-06 of" in shown
    assert "no threshold for FAR <= 1e-06: not resolved" in shown
    assert "FAR <= 0.1" in shown
    kept = json.loads(kinfold("verify", "all.npz", "--far", "1e-6,0.1", "--json").stdout)
    assert kept["tar_at_far"]["1e-06"] is None
    assert [threshold["fitted_for"] for threshold in kept["thresholds"]] == ["FAR <= 0.1", "EER"]


def test_queries_gallery_and_items_of_the_file_are_used(place):
    n = sum(SIZES.values())
    flags = {"is_query": np.arange(n) % 3 == 0, "is_gallery": np.arange(n) % 3 > 0, "item": np.arange(n) // 2}
    table(**flags).save("flags.npz")
    kept = json.loads(kinfold("verify", "flags.npz", "--far", "0.05", "--json").stdout)
    val, test = (part(table(**flags), split) for split in ("val", "test"))
    expected = verification(test.embedding, test.label, **pairs_of(test))
    assert (kept["n_positive"], kept["n_negative"]) == (expected.n_positive, expected.n_negative)
    assert kept["n_positive"] < verification(test.embedding, test.label).n_positive
    for threshold in kept["thresholds"]:
        assert threshold["applied"]["n_negative"] == expected.n_negative
        assert threshold["fitted"]["n_negative"] == verification(val.embedding, val.label, **pairs_of(val)).n_negative


def test_classes_on_both_sides_are_refused_unless_accepted(place):
    mixed = table()
    label = [name.replace("val 1", "test 1").replace("val 2", "test 2") for name in mixed.label]
    EmbeddingTable(mixed.embedding, tuple(label), split=mixed.split).save("mixed.npz")
    refused = kinfold("verify", "mixed.npz")
    assert refused.exit_code == 2
    assert "2 classes are among those that the threshold was fitted on: 'test 1', 'test 2'" in flat(refused.stderr)
    assert kinfold("verify", "mixed.npz", "--allow-shared-classes").exit_code == 0


def test_a_run_and_its_model_give_the_same_and_need_held_out_classes(place, tiny_photos):
    Path("tiny.toml").write_text("[train]\nepochs = 1\n", encoding="utf-8")
    fast = ["model.trunk=convnet", "model.dim=16", "data.size=24", "batches.batch_size=12"]
    trained = kinfold("train", "tiny.toml", f"data.root={tiny_photos}", *fast, "data.hold_out_every=3")
    assert trained.exit_code == 0, trained.stderr
    before = Path("runs/tiny/metrics.json").read_text()
    result = kinfold("verify", "runs/tiny", "--far", "0.1", "--json")
    assert result.exit_code == 0, result.stderr
    run = json.loads(result.stdout)
    assert "16 images of 2 classes (val)" in result.stderr and "16 images of 2 classes (test)" in result.stderr
    assert (run["n_positive"], run["n_negative"], run["fitted_on"]) == (56, 64, "val")
    assert run["thresholds"][0]["fitted"]["n_negative"] == 64
    model = json.loads(kinfold("verify", "runs/tiny/model", "--table", tiny_photos, "--far", "0.1", "--json").stdout)
    assert (model["auc"], model["fitted_on"]) == (run["auc"], None), "the table itself holds out nothing"
    assert Path("runs/tiny/metrics.json").read_text() == before
    on_train = kinfold("verify", "runs/tiny", "--fit-on", "train", "--far", "0.1")
    assert on_train.exit_code == 0 and "promises too much" in on_train.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["all.npz", "--split", "tset"], "did you mean `test`"),
        (["all.npz", "--fit-on", "vall"], "did you mean `val`"),
        (["all.npz", "--fit-on", "test"], "--fit-on and --split are both 'test'"),
        (["all.npz", "--far", "0.1,x"], "far is 'x'"),
        (["all.npz", "--far", "0"], "above 0 and at most 1"),
        (["all.npz", "--similarity", "cosin"], "did you mean `cosine`"),
        (["all.npz", "--memory", "lots"], "512MB"),
        (["all.npz", "--table", "x.csv"], "all.npz holds embeddings"),
        (["gone.npz"], "gone.npz is no file"),
        (["convnet"], "say which images to measure it on with --table"),
        (["one_class.npz"], "split 'val': no negative pair"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(place, arguments, message):
    one = table()
    label = [name if not name.startswith("val") else "val 0" for name in one.label]
    EmbeddingTable(one.embedding, tuple(label), split=one.split).save("one_class.npz")
    result = kinfold("verify", *arguments)
    assert result.exit_code == 2, (result.stdout, result.stderr, result.exception)
    assert re.search(message, flat(result.stderr))
    assert "Traceback" not in result.stderr


def test_help_shows_its_options():
    result = kinfold("verify", "--help")
    assert result.exit_code == 0 and "--fit-on" in result.stdout
