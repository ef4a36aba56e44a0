"""The command line as a person types it: results on stdout, chatter on stderr, one clear line for a mistake."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kinfold.cli import app

FAST = ["model.trunk=convnet", "model.dim=16", "data.size=24", "batches.batch_size=12", "optimizer.learning_rate=1e-3"]


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """Work in an empty folder with a configuration."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text("[train]\nepochs = 2\n", encoding="utf-8")
    return tmp_path


def kinfold(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def flat(text: str) -> str:
    return re.sub(r"[\s│]+", " ", text)


def test_train_then_evaluate_embed_and_list(place, tiny_photos):
    trained = kinfold("train", "tiny.toml", f"data.root={tiny_photos}", *FAST, "--json")
    assert trained.exit_code == 0, trained.stderr
    result = json.loads(trained.stdout)
    assert result["run"] == str(Path("runs/tiny"))
    assert 0 <= result["label"]["recall_at_1"] <= 1
    assert result["label"]["n_scored"] == 16
    assert "48 images of 6 classes" in trained.stderr
    kept = {"config.json", "environment.json", "log.jsonl", "metrics.json", "record.json", "checkpoints", "model"}
    kept |= {"embeddings_test.npz", "per_query_test.npz"}
    assert kept == {path.name for path in Path("runs/tiny").iterdir()}

    again = json.loads(kinfold("evaluate", "runs/tiny", "--json").stdout)
    assert again["label"] == result["label"], "a run reproduces its own numbers"
    from_file = json.loads(kinfold("evaluate", "runs/tiny/embeddings_test.npz", "--json").stdout)
    assert from_file["label"] == result["label"]
    model = json.loads(kinfold("evaluate", "runs/tiny/model", "--table", tiny_photos, "--json").stdout)
    assert model["label"] == result["label"]

    for name in ("all.npz", "all.parquet"):
        assert kinfold("embed", "runs/tiny", tiny_photos, "--out", name).exit_code == 0
        embedded = json.loads(kinfold("evaluate", name, "--split", "test", "--json").stdout)
        assert embedded["label"]["recall_at_1"] == result["label"]["recall_at_1"]

    listed = kinfold("ls", "runs")
    assert "finished, recall@1" in flat(listed.stdout)
    shown = flat(kinfold("evaluate", "runs/tiny", "--ks", "1,3").stdout)
    assert "recall_at_3" in shown and "95 % interval" in shown and "kind" in shown
    few = kinfold("train", "tiny.toml", f"data.root={tiny_photos}", *FAST, "evaluation.coarse_metrics=['recall_at_1']", "run=few")
    assert "map_at_r" in flat(few.stdout) and "–" in flat(few.stdout), "coarse levels may have fewer metrics"


def test_measuring_a_run_elsewhere_or_in_part_keeps_its_own_numbers(place, tiny_photos):
    kinfold("train", "tiny.toml", f"data.root={tiny_photos}", *FAST)
    before = Path("runs/tiny/metrics.json").read_text()
    assert kinfold("evaluate", "runs/tiny", "--metrics", "nmi").exit_code == 0
    assert kinfold("evaluate", "runs/tiny", "--table", tiny_photos).exit_code == 0
    assert Path("runs/tiny/metrics.json").read_text() == before
    refused = kinfold("evaluate", "runs/tiny", "--size", "99")
    assert refused.exit_code == 2 and "a trained model keeps the preprocessing" in flat(refused.stderr)
    assert "--table, --size and --resize are for models" in flat(
        kinfold("evaluate", "runs/tiny/embeddings_test.npz", "--table", tiny_photos).stderr
    )


def test_the_same_command_again_changes_nothing(place, tiny_photos):
    command = ("train", "tiny.toml", f"data.root={tiny_photos}", *FAST, "--json")
    first, second = kinfold(*command), kinfold(*command)
    assert first.stdout == second.stdout
    assert "this run ended before" in second.stderr


def test_another_configuration_does_not_overwrite_a_run(place, tiny_photos):
    kinfold("train", "tiny.toml", f"data.root={tiny_photos}", *FAST)
    other = kinfold("train", "tiny.toml", f"data.root={tiny_photos}", *FAST, "train.epochs=3")
    assert other.exit_code == 2
    assert "differs in `train.epochs`" in other.stderr


def test_untrained_features_are_measured_by_the_trunks_name(place, tiny_photos):
    found = kinfold("evaluate", "convnet", "--table", tiny_photos, "--size", "24", "--metrics", "recall,nmi", "--json")
    assert {"recall_at_1", "recall_at_8", "nmi"} <= set(json.loads(found.stdout)["label"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian", "tiny.toml"], "did you mean `train`"),
        (["train"], "Missing argument"),
        (["train", "tiny.toml", "--epochs", "3"], "No such option: --epochs"),
        (["train", "nowhere.toml"], "nowhere.toml is no file"),
        (["train", "tiny.toml"], "`data` is missing"),
        (["train", "tiny.toml", "data.root=nowhere"], "nowhere"),
        (["train", "tiny.toml", "data.root={photos}", "objective.loss=proxy_ancor"], "did you mean `proxy_anchor`"),
        (["train", "tiny.toml", "data.root={photos}", "train.epoch=3"], "did you mean `epochs`"),
        (["train", "tiny.toml", "data.root={photos}", "model.trunk=convnett"], "convnet"),
        (["train", "tiny.toml", "data.root={photos}", "evaluation.metrics=['recal_at_1']"], "recal_at_1"),
        (["train", "tiny.toml", "data.root={photos}", *FAST, "optimizer.proxys.kind=sgd"], "did you mean `proxies`"),
        (["train", "tiny.toml", "data.root={photos}", *FAST, "batches.batch_size=400"], "400"),
        (["evaluate", "nowhere/model"], "nowhere/model is no folder|say which images"),
        (["evaluate", "convnet"], "say which images to measure it on with --table"),
        (["evaluate", "gone.npz"], "gone.npz is no file"),
        (["evaluate", "convnet", "--table", "{photos}", "--split", "tset"], "did you mean `test`"),
        (["evaluate", "convnet", "--table", "{photos}", "--ks", "1,x"], "give whole numbers"),
        (["evaluate", "convnet", "--table", "{photos}", "--metrics", "recal"], "recal"),
        (["embed", "convnet", "{photos}", "--out", "x.csv"], "must end in .npz or .parquet"),
        (["ls", "loses"], "did you mean `losses`"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(place, tiny_photos, arguments, message):
    result = kinfold(*[argument.format(photos=tiny_photos) if "{photos}" in argument else argument for argument in arguments])
    assert result.exit_code == 2, (result.stdout, result.stderr, result.exception)
    assert re.search(message, flat(result.stderr))
    assert "Traceback" not in result.stderr


def test_a_loss_that_is_not_finite_is_exit_code_1(place, tiny_photos):
    result = kinfold("train", "tiny.toml", f"data.root={tiny_photos}", *FAST, "optimizer.learning_rate=1e30", "run=bad")
    assert result.exit_code == 1
    assert re.search(r"error: the (loss term|gradient norm).*the last good checkpoint is kept", flat(result.stderr))


@pytest.mark.parametrize("what", ["losses", "objectives", "divergences", "miners", "similarities", "metrics"])
def test_lists_have_a_line_for_each_name(what):
    result = json.loads(kinfold("ls", what, "--json").stdout)
    assert result and all(line for line in result.values())


def test_trunks_can_be_searched():
    assert "tf_efficientnet_lite0" in kinfold("ls", "trunks", "lite0").stdout


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_the_same_command_goes_on(place, tiny_photos, number):
    command = [sys.executable, "-m", "kinfold.cli", "train", "tiny.toml", f"data.root={tiny_photos}", *FAST, "train.epochs=400"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    log = place / "runs" / "tiny" / "log.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert re.search(r"error: stopped at step \d+ \(epoch \d+\).*the same command goes on", flat(stderr))
    assert "Traceback" not in stderr
    steps = int(re.search(r"stopped at step (\d+)", stderr).group(1))
    again = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = ""
    while "going on" not in line and again.poll() is None:
        line = again.stderr.readline()
    again.kill()
    again.communicate()
    assert re.search(rf"step {steps:,}$", line.strip())


def test_help_of_every_command_shows_its_options():
    for command in ("train", "evaluate", "embed", "demo", "ls"):
        result = kinfold(command, "--help")
        assert result.exit_code == 0 and "--help" in result.stdout
