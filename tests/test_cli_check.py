"""`kinfold check` as a person types it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kinfold.checks.table import check_table
from kinfold.cli import app
from kinfold.data.read import read_table


def kinfold(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def flat(text: str) -> str:
    return re.sub(r"[\s│]+", " ", text)


@pytest.fixture
def photos(tmp_path, tiny_photos, monkeypatch) -> Path:
    """Work beside a folder of photographs that may be spoilt."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(tiny_photos, "photos"))


def spoil(photos: Path) -> None:
    """Put a training picture under another label."""
    shutil.copy(photos / "0_0.png", photos / "1_0.png")


def warn(photos: Path) -> None:
    """Let one class hold a picture twice."""
    shutil.copy(photos / "0_0.png", photos / "0_1.png")


def test_a_healthy_folder_ends_with_0_and_says_what_it_is(photos):
    result = kinfold("check", photos)
    assert result.exit_code == 0, result.stderr
    assert "note  open_set: test is an open set: none of its 2 classes is trained on" in result.stdout
    assert result.stdout.endswith("photos: 0 errors, 0 warnings, 1 note\n")
    assert "looking at 64 images of 8 classes" in result.stderr


def test_an_error_ends_with_1_and_is_told_with_its_rows_and_what_to_do(photos):
    spoil(photos)
    result = kinfold("check", photos / "table.csv", "--workers", 0)
    assert result.exit_code == 1
    for line in ("error  two_labels: 2 images are the same picture", "row 0: 0_0.png", "row 8: 1_0.png", "→ look at them"):
        assert line in result.stdout


def test_a_warning_ends_with_0_or_with_1_if_strict(photos):
    warn(photos)
    assert kinfold("check", photos).exit_code == 0
    strict = kinfold("check", photos, "--strict")
    assert strict.exit_code == 1
    assert "warning  duplicate: 2 images are the same picture of class 'class 0' in train" in strict.stdout
    assert "0 errors, 1 warning, 1 note" in strict.stdout


def test_json_is_what_the_library_finds(photos):
    spoil(photos)
    warn(photos)
    result = kinfold("check", photos, "--json")
    assert result.exit_code == 1
    record = json.loads(result.stdout)
    assert record["findings"] == [finding.to_dict() for finding in check_table(read_table(photos))]
    assert (record["target"], record["n_errors"], record["n_warnings"], record["n_notes"]) == ("photos", 1, 0, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "table 'nowhere' does not exist"),
        (["nowhere.toml"], "nowhere.toml is no file"),
        (["photos", "train.epochs=3"], "photos is no .toml file, so the settings train.epochs=3 have nothing to change"),
        (["run.toml", "data.root=photos", "train.epoch=3"], "did you mean `epochs`"),
        (["run.toml", "data.root=nowhere"], "table 'nowhere' does not exist"),
        (["photos/broken.csv"], "has no column `label`"),
    ],
)
def test_a_target_that_cannot_be_read_ends_with_2(photos, arguments, message):
    Path("run.toml").write_text("[train]\nepochs = 1\n")
    (photos / "broken.csv").write_text("path,name\n0_0.png,a\n")
    result = kinfold("check", *arguments)
    assert result.exit_code == 2
    assert message in flat(result.stderr)
    assert not result.stdout


def test_a_configuration_is_checked_with_its_table(photos, monkeypatch):
    pytest.importorskip("kinfold.checks.config")
    spoil(photos)
    Path("run.toml").write_text(
        "[model]\ntrunk = 'convnet'\ndim = 8\n[data]\nroot = 'photos'\nsize = 24\n[batches]\nbatch_size = 12\n[train]\nepochs = 1\n"
    )
    result = kinfold("check", "run.toml", "data.hold_out_every=3", "--json")
    assert result.exit_code == 1, result.stderr
    codes = [finding["code"] for finding in json.loads(result.stdout)["findings"]]
    assert codes[0] == "two_labels" and len(codes) > codes.count("open_set") + 1
    assert "val is an open set" in result.stdout, "classes are held out as the configuration says"
    assert not Path("runs").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_ctrl_c_ends_at_once(photos):
    command = [sys.executable, "-c", SLOW, "check", str(photos), "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert "looking at" in process.stderr.readline()
    time.sleep(1)
    begin = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers get it too
    stdout, stderr = process.communicate(timeout=30)
    assert time.monotonic() - begin < 5
    assert (process.returncode, stdout, stderr) == (130, "", "stopped\n")


# Each picture takes so long that 64 of them are not done when the signal comes.
SLOW = """
import time
import kinfold.checks.images as images
from kinfold.cli import main
quick = images.look_at
def look_at(image):
    time.sleep(0.2)
    return quick(image)
images.look_at = look_at
main()
"""
