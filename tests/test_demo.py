"""The demo, end to end with three epochs: three rows of scores and a picture."""

import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from kinfold.cli import app


@pytest.mark.slow
def test_the_demo_beats_pixels_and_the_untrained_network_and_draws(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo"), "--epochs", "3", "--json"])
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    recall = {name: found[name]["recall_at_1"] for name in ("raw pixels", "untrained network", "trained")}
    assert recall["trained"] > max(recall["raw pixels"], recall["untrained network"]) + 0.1
    with Image.open(found["picture"]) as picture:
        assert min(picture.size) > 500
    again = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo"), "--epochs", "3", "--json"])
    assert json.loads(again.stdout)["trained"] == found["trained"], "a second run uses what is there and says the same"
