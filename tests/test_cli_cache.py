"""`kinfold cache ls` and `kinfold cache clear`."""

import json
import os

import pytest
from typer.testing import CliRunner

import kinfold
from kinfold.cli import app
from kinfold.measure import embed_table
from kinfold.models.feature_cache import FeatureCache

runner = CliRunner()


@pytest.fixture
def cache(tiny_photos, tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("KINFOLD_CACHE", str(folder))
    table = kinfold.read_table(tiny_photos)
    for part, rows in (("trunk", table), ("blocks.1", table.of_split("test"))):
        embed_table(kinfold.Embedder("convnet", 8, size=24).freeze(part), rows, cache=FeatureCache(folder))
    return FeatureCache(folder)


def test_ls_shows_what_is_kept_and_where(cache):
    result = runner.invoke(app, ["cache", "ls"])
    assert result.exit_code == 0
    assert "blocks.1" in result.stdout and "2 entries" in result.stdout and str(cache.folder) in result.stdout.replace("\n", "")
    listed = json.loads(runner.invoke(app, ["cache", "ls", "--json"]).stdout)
    assert sorted(entry["rows"] for entry in listed["entries"]) == [16, 64]


def test_clear_removes_what_is_named_by_its_first_digits(cache):
    key = next(entry["key"] for entry in cache.entries() if entry["part"] == "trunk")
    result = runner.invoke(app, ["cache", "clear", key[:10]])
    assert result.exit_code == 0 and "removed 1 of 2" in result.stderr
    assert [entry["part"] for entry in cache.entries()] == ["blocks.1"]


def test_clear_without_a_key_removes_all_or_what_was_not_used_for_long(cache):
    assert "removed 0 of 2" in runner.invoke(app, ["cache", "clear", "--unused-days", "1"]).stderr
    about = cache.folder / cache.entries()[0]["key"] / "about.json"
    os.utime(about, (0, 0))
    assert "removed 1 of 2" in runner.invoke(app, ["cache", "clear", "--unused-days", "1"]).stderr
    assert "removed 1 of 1" in runner.invoke(app, ["cache", "clear"]).stderr
    assert not cache.entries()


def test_an_unknown_key_is_a_usage_error_and_an_empty_cache_is_no_fault(cache, tmp_path):
    result = runner.invoke(app, ["cache", "clear", "zzz"])
    assert result.exit_code == 2 and "no entry 'zzz'" in result.stderr
    result = runner.invoke(app, ["cache", "ls", "--folder", str(tmp_path / "none")])
    assert result.exit_code == 0 and "0 entries" in result.stdout
    assert runner.invoke(app, ["cache", "cler"]).exit_code == 2
