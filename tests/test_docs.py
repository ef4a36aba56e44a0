"""Every fenced example of README and docs runs, in the order of its page, and prints what the page says."""

import contextlib
import io
import json
import os
import re
import runpy
import tomllib
from pathlib import Path

import pytest

from kinfold.build_objective import build_objective
from kinfold.config import Config, read_config
from kinfold.grid.file import read_grid
from kinfold.grid.plan import cells_of

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[tuple[str, str, str]]:
    """Return (language, rest of the fence line, text) of every fenced block."""
    return [match.groups() for match in FENCE.finditer(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_examples_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"__name__": "__example__"}
    expected: str | None = None
    printed = ""
    for language, _, text in examples(page):
        if language == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, str(page), "exec"), namespace)
            printed = out.getvalue()
        elif language == "text" and printed:
            expected = text
            assert normalised(printed) == normalised(expected), f"{page.name} promises another output"
            printed = ""


def normalised(text: str) -> str:
    """Blank out what differs between machines: times and speeds, and decimals of a training run."""
    return re.sub(r"\d+\.\d+", "#", re.sub(r"[ \t]+", " ", text)).strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_toml_examples_are_configurations(page, tmp_path):
    for language, _, text in examples(page):
        if language == "toml":
            file = tmp_path / "example.toml"
            file.write_text(text, encoding="utf-8")
            if is_grid(file):
                assert cells_of(read_grid(file))
            else:
                read_config(file, [] if "root" in text else ["data.root=."])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_the_repository_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_loss_has_a_line_in_choose_a_loss():
    from kinfold.losses import LOSSES

    text = (ROOT / "docs" / "choose-a-loss.md").read_text(encoding="utf-8")
    assert [name for name in LOSSES if f"`{name}`" not in text] == []


def test_commands_of_the_readme_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for script in re.findall(r"scripts/\w+", text):
        assert os.access(ROOT / script, os.X_OK), f"{script} cannot be run"


def is_grid(file: Path) -> bool:
    return "base" in tomllib.loads(file.read_text(encoding="utf-8"))


RESULTS = ROOT / "experiments" / "results"
EXPERIMENTS = [file for file in sorted((ROOT / "experiments").glob("*.toml")) if not is_grid(file)]
GRIDS = [file for file in sorted((ROOT / "experiments").rglob("*.toml")) if is_grid(file)]


def recorded_table(file: Path) -> dict:
    """Return the table that a grid's runs gave; it lies under the results as the grid lies under the experiments."""
    place = RESULTS / file.relative_to(ROOT / "experiments").with_suffix(".json")
    return json.loads(place.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.name)
def test_experiment_files_are_configurations_with_command_time_and_result(file):
    read_config(file, ["data.root=."])
    header = header_of(file)
    for word in ("run:", "time:", "result:", "untrained:"):
        assert word in header, f"the header of {file.name} says nothing of `{word}`"


RECIPES = [file for file in sorted((ROOT / "experiments").glob("*/*.toml")) if not is_grid(file) and file.name != "page.toml"]


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.name)
def test_recipes_are_configurations_whose_objective_can_be_made(file):
    config = read_config(file)
    assert build_objective(config.objective, n_classes=100, dim=8, epochs=config.train.epochs).describe()
    header = header_of(file)
    for word in ("run:", "time:", "result:"):
        assert word in header, f"the header of {file.name} says nothing of `{word}`"


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.name)
def test_numbers_in_the_headers_are_those_of_the_recorded_runs(file):
    recorded = json.loads((ROOT / "experiments" / "results" / f"{file.stem}.json").read_text(encoding="utf-8"))
    header = header_of(file)
    for line, kind in (("result:", "trained"), ("untrained:", "untrained")):
        text = header[header.index(line) :].split("\n")[0]
        recall, mean_precision = (100 * recorded["levels"]["label"][name][kind] for name in ("recall_at_1", "map_at_r"))
        assert f"Recall@1 {recall:.1f}" in text, f"{file.name}: {text}"
        assert f"MAP@R {mean_precision:.1f}" in text, f"{file.name}: {text}"
    config = read_config(file, ["data.root=."]).model_dump(mode="json")
    # Settings that came later have their defaults in what was recorded.
    known = {key: value for key, value in recorded["config"].items() if key in Config.model_fields}
    then = Config(run=".", **known).model_dump(mode="json")
    for part in ("model", "objective", "batches", "train", "optimizer", "schedule", "seed"):
        assert config[part] == then[part], f"{file.name} has changed since its recorded run: `{part}`"


@pytest.mark.parametrize("file", GRIDS, ids=lambda file: file.name)
def test_grids_have_a_recorded_table_of_all_their_variants(file):
    grid, header = read_grid(file), header_of(file)
    for word in ("run:", "time:", "result:"):
        assert word in header, f"the header of {file.name} says nothing of `{word}`"
    recorded = recorded_table(file)
    assert list(recorded["datasets"]) == list(grid.datasets)
    for rows in recorded["datasets"].values():
        assert [(row["name"], row["seeds"]) for row in rows] == [(each.name, list(each.seeds)) for each in grid.variants]


PAGES = runpy.run_path(str(ROOT / "experiments" / "page.py"))


@pytest.mark.parametrize("method", PAGES["methods"]())
def test_a_methods_page_has_the_tables_of_its_recorded_runs(method):
    text = PAGES["page_of"](method).read_text(encoding="utf-8")
    assert "| --- |" in PAGES["section"](method)
    assert text == PAGES["with_section"](method, text), f"run `python experiments/page.py {method}`"


def test_the_header_of_the_glyphs_hierarchy_says_what_was_recorded():
    file = ROOT / "experiments" / "hpl" / "glyphs.toml"
    recorded = recorded_table(file)
    (row,) = [row for row in recorded["hierarchy"] if (row["level"], row["other"]) == ("level_1", "script_case")]
    assert row["p_value"] < 0.01
    assert f"AMI {row['ami']:.3f} with script × case" in header_of(file)
    config = read_config(file).model_dump(mode="json")
    then = Config(run=".", **{key: value for key, value in recorded["config"].items() if key != "run"}).model_dump(mode="json")
    assert {**config, "run": "."} == then, "the file has changed since its recorded run"


def test_numbers_of_the_lanes_in_the_readme_are_those_of_the_table():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    recorded = json.loads((ROOT / "experiments" / "results" / "lanes.json").read_text(encoding="utf-8"))["datasets"]
    for name, rows in recorded.items():
        lines = [line for line in text.splitlines() if line.startswith("|") and f"<!-- {name} -->" in line]
        assert len(lines) == 1, f"the README has no line for {name}"
        for row in rows:
            if row["name"] in ("base", "frozen_512", "fine_tuned"):
                for metric in ("recall_at_1", "map_at_r"):
                    assert f"{100 * row['values'][metric]['mean']:.1f}" in lines[0], (name, row["name"], metric)


def header_of(file: Path) -> str:
    return "\n".join(line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
