"""`kinfold novel show | map | align | cost | ratios`: on small runs, and the mistakes people make."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from kinfold.cli import app
from kinfold.core.reduce import normalise
from kinfold.core.similarity import cosine
from kinfold.engine.checkpoint import load_checkpoint
from kinfold.engine.run import Run
from kinfold.novel_run import generated_classes

FAST = ["model.trunk=convnet", "model.dim=16", "data.size=24", "batches.batch_size=12", "train.log_every=1", "train.epochs=3"]
NC = ["objective.name=l2a_nc", "objective.pretraining_epochs=1", "objective.hidden_dim=8"]
OBJECTIVES = {
    "base": ["objective.name=proxy"],
    "nc": NC,
    "ec": [*NC, "objective.existing=true"],
    "pairs": [*NC, "objective.host=pairwise", "objective.loss=multi_similarity"],
    "ps": ["objective.name=proxy_synthesis"],
}


def kinfold(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def flat(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def runs(tmp_path_factory, tiny_photos) -> Path:
    """Return a folder of finished runs, one an objective, and the configuration they were made from."""
    folder = tmp_path_factory.mktemp("novel")
    (folder / "run.toml").write_text(f"[data]\nroot = '{tiny_photos}'\n", encoding="utf-8")
    for name, objective in OBJECTIVES.items():
        result = kinfold("train", folder / "run.toml", f"run={folder / name}", *FAST, *objective)
        assert result.exit_code == 0, result.stderr
    return folder


def test_a_run_is_read_back_as_it_was_trained(runs):
    found = generated_classes(runs / "nc")
    assert (found.n_generated, len(found.classes), found.existing) == (12, 6, False)
    assert found.novel_proxies.shape == (12, 16)
    assert found.real_proxies.shape == (6, 16)
    state = load_checkpoint(Run(runs / "nc").last)["objective"]
    assert torch.equal(found.real_proxies, state["base.proxies"])
    assert torch.equal(found.network.norms[1].gamma, state["generator.network.norms.1.gamma"])
    assert not found.network.training
    one, label = found.vectors(torch.tensor([3, 5]), 4)
    assert label.tolist() == [3] * 4 + [5] * 4
    assert torch.equal(one, found.vectors(torch.tensor([3, 5]), 4)[0])
    torch.testing.assert_close(one.norm(dim=1), torch.ones(8))
    existing = generated_classes(runs / "ec")
    assert (existing.n_generated, existing.novel_proxies, existing.existing) == (6, None, True)
    pairs = generated_classes(runs / "pairs")
    assert (pairs.n_generated, pairs.novel_proxies, pairs.real_proxies) == (12, None, None)


class TestShow:
    def test_it_has_the_last_numbers_of_the_log_and_the_nearest_real_classes(self, runs):
        result = kinfold("novel", "show", runs / "nc", runs / "ps", runs / "pairs", "--json")
        assert result.exit_code == 0, result.stderr
        found = {Path(row["run"]).name: row for row in json.loads(result.stdout)["runs"]}
        rows = [json.loads(line) for line in (runs / "nc" / "log.jsonl").read_text().splitlines()]
        last = [row["health/novel_own_similarity"] for row in rows if "health/novel_own_similarity" in row][-1]
        assert found["nc"]["novel_own_similarity"] == last
        assert found["ps"]["generated_variance"] is None
        assert found["pairs"]["novel_own_similarity"] is None
        nc = generated_classes(runs / "nc")
        near = cosine(nc.novel_proxies, nc.real_proxies).argmax(dim=1).tolist()
        assert sum(found["nc"]["nearest_real"].values()) == 12
        assert found["nc"]["nearest_real"] == {
            f"class {place}": near.count(place) for place in sorted(set(near), key=lambda p: -near.count(p))
        }

    def test_people_read_a_table_and_get_a_picture(self, runs, tmp_path):
        result = kinfold("novel", "show", runs / "nc", runs / "ps", "--picture", tmp_path / "course.png")
        assert result.exit_code == 0, result.stderr
        assert "nearest real proxy" in flat(result.stdout)
        assert "real classes are the nearest of a generated one, most often class" in flat(result.stdout)
        with Image.open(tmp_path / "course.png") as image:
            assert min(image.size) > 400

    def test_a_collapse_gets_a_verdict(self, runs, tmp_path):
        copy = shutil.copytree(runs / "nc", tmp_path / "nc")
        with (copy / "log.jsonl").open("a") as log:
            log.write(json.dumps({"epoch": 2, "step": 99, "health/generated_variance": 0.01}) + "\n")
        result = kinfold("novel", "show", copy)
        assert "have collapsed to points: their width is 0.010 of a real class's" in flat(result.stdout)


class TestMap:
    @pytest.mark.parametrize("name", ["nc", "pairs", "ec"])
    def test_both_maps_are_drawn_with_whose_neighbours_generated_vectors_are(self, runs, tmp_path, name):
        result = kinfold("novel", "map", runs / name, "--out", tmp_path, "--max-images", "60", "--per-class", "4", "--json")
        assert result.exit_code == 0, result.stderr
        found = json.loads(result.stdout)
        assert sum(found["neighbours"].values()) == pytest.approx(1.0)
        assert found["files"] == [str(tmp_path / "novel_map.png"), str(tmp_path / "novel_classes.png")]
        for file in found["files"]:
            with Image.open(file) as image:
                assert min(image.size) > 300

    def test_shares_are_those_of_a_search_by_hand(self, runs):
        from kinfold.commands.novel_map import _neighbours

        found = generated_classes(runs / "nc")
        made, code = found.vectors(torch.arange(12), 3)
        training = torch.randn(20, 16, generator=torch.Generator().manual_seed(0))
        every = torch.cat([made, normalise(training)])
        counts = {"own": 0, "other": 0, "training": 0}
        for i in range(36):
            sim = (every[i] @ every.T).tolist()
            near = sorted((j for j in range(56) if j != i), key=lambda j: -sim[j])[:10]
            for j in near:
                counts["training" if j >= 36 else "own" if code[i] == code[j] else "other"] += 1
        assert _neighbours(made, code, training) == pytest.approx({name: n / 360 for name, n in counts.items()})

    def test_neighbours_of_unseen_images_are_counted_by_hand(self):
        from kinfold.commands.novel_map import _generated_share

        made = normalise(torch.randn(9, 4, generator=torch.Generator().manual_seed(1)))
        training = 3 * torch.randn(8, 4, generator=torch.Generator().manual_seed(2))
        unseen = torch.randn(5, 4, generator=torch.Generator().manual_seed(3))
        every = torch.cat([made, normalise(training)])
        n = sum(j < 9 for x in unseen for j in sorted(range(17), key=lambda j: -float(x @ every[j]))[:10])
        assert _generated_share(unseen, made, training) == pytest.approx(n / 50)
        assert 0 < n < 50
        assert _generated_share(unseen[:0], made, training) is None


class TestAlign:
    def test_both_directions_for_generated_and_training_classes(self, runs):
        result = kinfold("novel", "align", runs / "nc", "--vectors", "8", "--json")
        assert result.exit_code == 0, result.stderr
        found = json.loads(result.stdout)
        assert found["vectors"] == 8
        assert found["rows"]["generated → unseen"]["n_classes"] == [12, 2]
        assert found["rows"]["training → training"]["n_classes"] == [6, 6]
        assert all(row["forward"] > 0 and row["backward"] > 0 for row in found["rows"].values())

    def test_people_read_which_is_nearer(self, runs):
        result = kinfold("novel", "align", runs / "nc", "--vectors", "8")
        assert result.exit_code == 0, result.stderr
        assert len(re.findall(r"KL\(\w+ ‖ \w+\): (generated|training)( and training)? classes are", flat(result.stdout))) == 2

    @pytest.mark.parametrize(
        ("one", "other", "said"),
        [
            ((0.1, 0.2), (0.3, 0.4), "generated classes are nearer to unseen ones (0.150 generated, 0.350 training)"),
            ((0.5, 0.6), (0.3, 0.4), "training classes are nearer to unseen ones (0.550 generated, 0.350 training)"),
            ((0.2, 0.35), (0.3, 0.4), "about as near to unseen ones: the intervals overlap"),
            ((0.3, 0.4), (0.1, 0.5), "about as near to unseen ones: the intervals overlap"),
        ],
    )
    def test_sides_whose_intervals_overlap_are_not_told_apart(self, one, other, said):
        from kinfold.commands.novel_align import _nearer
        from kinfold.evaluation.alignment import Alignment

        rows = [Alignment(9.0, sum(ends) / 2, (8.0, 10.0), ends, (3, 3), 10) for ends in (one, other)]
        assert said in _nearer(*rows, "backward")
        assert "overlap" in _nearer(*rows, "forward")


def test_cost_compares_all_on_one_host(runs):
    result = kinfold("novel", "cost", runs / "run.toml", *FAST, *NC, "--rounds", "2", "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert list(rows) == ["base", "+ Proxy Synthesis", "+ L2A-NC, pretraining", "+ L2A-NC, joint"]
    own = generated_classes(runs / "nc")
    added = sum(p.numel() for p in own.network.parameters()) + own.novel_proxies.numel()
    assert [row["added"] for row in rows.values()] == [0, 0, added, added]
    assert rows["+ L2A-NC, joint"]["parameters"] == rows["base"]["parameters"] + added
    assert rows["base"]["ratio"] == 1.0
    assert all(row["seconds"] > 0 and row["activation_bytes"] > 0 for row in rows.values())
    pairs = kinfold("novel", "cost", runs / "run.toml", *FAST, *OBJECTIVES["pairs"], "--rounds", "1")
    assert pairs.exit_code == 0, pairs.stderr
    assert "Nothing is added to the saved model" in flat(pairs.stdout)


def test_ratios_are_compared_with_none_and_drawn(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = ["optimizer.generator.learning_rate=1e-3", "stage.joint.optimizer.novel_proxies.learning_rate=1e-2"]
    command = ["novel", "ratios", runs / "run.toml", *FAST, *NC, *own, "train.epochs=2", "--ratios", "0,1,2", "--seeds", "2"]
    result = kinfold(*command, "--picture", "curve.png", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert [row["name"] for row in found["datasets"][""]] == ["base", "ratio_1", "ratio_2"]
    assert "map_at_r" in found["datasets"][""][1]["differences"]
    assert Path(found["folder"]).name == "run_ratios"
    with Image.open("curve.png") as image:
        assert min(image.size) > 300
    again = kinfold(*command)
    assert again.exit_code == 0, again.stderr
    assert "ratio_2" in flat(again.stdout)


def test_cost_takes_the_settings_of_the_method_that_is_configured(runs):
    from kinfold.commands.novel_cost import _configs
    from kinfold.config import read_config

    def objectives(*overrides):
        found = _configs(read_config(runs / "run.toml", [*FAST, *overrides]))
        return {name: config.objective for name, config in found.items()}

    own = objectives("objective.name=proxy_synthesis", "objective.synthesis_ratio=2", "objective.concentration=1")
    assert (own["+ Proxy Synthesis"].synthesis_ratio, own["+ Proxy Synthesis"].concentration) == (2.0, 1.0)
    assert own["base"].name == "proxy"
    assert own["+ L2A-NC, joint"].novel_ratio is own["base"].synthesis_ratio is None
    own = objectives(*NC, "objective.novel_ratio=3")
    assert own["+ L2A-NC, joint"].novel_ratio == own["+ L2A-NC, pretraining"].novel_ratio == 3.0
    assert own["+ Proxy Synthesis"].novel_ratio is own["+ Proxy Synthesis"].synthesis_ratio is None


def test_the_peak_has_a_column_where_it_was_measured():
    from kinfold.commands.novel_cost import COLUMNS, _table

    row = {"seconds": 0.0021, "ratio": 1.5, "parameters": 1200, "added": 0, "state_bytes": 4000, "activation_bytes": 2_000_000}
    columns, cells = _table({"base": {**row, "peak_bytes": None}})
    assert (columns, len(cells[0])) == (COLUMNS[:-1], len(COLUMNS) - 1)
    columns, cells = _table({"base": {**row, "peak_bytes": 3_000_000}})
    assert columns == COLUMNS
    assert cells == [["base", "2.1", "1.500", "1,200", "0", "4.0 kB", "2.0 MB", "3.0 MB"]]


def test_a_row_of_a_grid_becomes_its_base_plus_the_interval_of_the_difference():
    from kinfold.commands.novel_ratios import _point

    difference = {"mean": 0.05, "over_queries": [0.02, 0.07]}
    ratio, value, interval = _point({"name": "ratio_0.5", "values": {"m": {"mean": 0.35}}, "differences": {"m": difference}}, "m")
    assert (ratio, value) == (0.5, 0.35)
    assert interval == pytest.approx((0.32, 0.37))
    assert _point({"name": "base", "values": {"m": {"mean": 0.3}}, "differences": {}}, "m") == (0.0, 0.3, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "nowhere"], "nowhere is no run"),
        (["map", "nowhere"], "nowhere is no run"),
        (["show", "{runs}/base"], "has logged nothing about generated classes"),
        (["map", "{runs}/base"], "generates no classes: its objective is not l2a_nc"),
        (["align", "{runs}/ps"], "generates no classes"),
        (["show", "{runs}/nc", "{runs}/nc"], "a run is named twice"),
        (
            ["align", "{runs}/nc", "--vectors", "99"],
            "99 vectors of each class: at least 2, and no more than the largest class has (8)",
        ),
        (["align", "{runs}/nc", "--unseen", "tset"], "did you mean `test`"),
        (["ratios", "{runs}/run.toml"], "has no novel classes to vary"),
        (
            ["ratios", "{runs}/run.toml", "objective.name=l2a_nc", "--ratios", "1,two"],
            "--ratios '1,two': give numbers of 0 or more",
        ),
        (["cost", "{runs}/none.toml"], "is no file"),
    ],
)
def test_mistakes_get_one_clear_error(runs, arguments, message):
    result = kinfold("novel", *(argument.format(runs=runs) for argument in arguments))
    assert result.exit_code == 2
    assert message in flat(result.stderr)


def test_a_run_that_has_only_begun_says_so(runs, tmp_path):
    begun = Run(shutil.copytree(runs / "nc", tmp_path / "begun"))
    begun.last.unlink()
    begun.best.unlink(missing_ok=True)
    result = kinfold("novel", "map", tmp_path / "begun")
    assert result.exit_code == 2
    assert "has no checkpoint yet" in flat(result.stderr)
    shown = kinfold("novel", "show", tmp_path / "begun", "--json")
    assert shown.exit_code == 0, shown.stderr
    assert "without the nearest real classes:" in flat(shown.stderr)
    (row,) = json.loads(shown.stdout)["runs"]
    assert row["nearest_real"] == {}
    assert row["generated_variance"] > 0
