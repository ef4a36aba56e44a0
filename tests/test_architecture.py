"""The rules that keep the tree readable: imports flow one way, files and functions stay small, two levels of classes."""

import ast
from itertools import chain
from pathlib import Path

import pytest

import kinfold

SOURCE = Path(kinfold.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
FORBIDDEN_NAMES = {"utils", "common", "misc", "helpers", "tools"}

# What each part may import, besides itself; `records` stands for the files that everything may use.
RECORDS = {"errors", "records", "atomic", "lock", "settings", "modes", "seeding"}
PARTS_OF_OBJECTIVES = {"coarse_level", "draws", "generator", "host", "novel_health", "novel_vectors"}
LAYERS = {
    "core": set(),
    "losses": {"core"},
    "images": set(),
    "data": {"core", "images"},
    "models": {"core", "images"},
    "clusterings": {"core"},
    "objectives": {"clusterings", "core", "losses"},
    "engine": {"objectives.base"},
    "evaluation": {"core"},
    "reports": {"core", "images", "evaluation"},
    "embeddings": set(),
    "recipe": {"engine.settings"},
    "objective_settings": set(),
    "binding": set(),
    "config": {"recipe", "engine.settings", "objective_settings"},
    "console": {"engine"},
    "stored": {"images", "data", "models"},
    "measure": {"core", "images", "data", "models", "evaluation", "embeddings", "stored"},
    "head_start": {"core", "data", "models", "measure"},
    "training_batches": {"data", "models", "recipe", "stored"},
    "train": {"data", "models", "engine", "objectives.base", "recipe", "measure", "training_batches"},
    "build": {"data", "models", "config"},
    "build_objective": {"binding", "clusterings", "core", "data", "losses", "objectives", "objective_settings"},
    "fitted_hierarchy": {"clusterings", "core", "evaluation"},
    "novel_run": {"core", "engine.run", "engine.checkpoint", "learned_groups", "objectives"},
    "learned_groups": {"build", "config", "core", "data", "engine.run", "evaluation", "models"},
    "comparison": {"config", "data", "engine.run", "evaluation"},
    "experiment": {
        *(
            "build",
            "build_objective",
            "comparison",
            "config",
            "data",
            "engine",
            "evaluation",
            "head_start",
            "measure",
            "models",
            "recipe",
            "train",
        ),
    },
    "grid": {"allocator", "build", "build_objective", "comparison", "config", "data", "engine", "evaluation", "experiment"},
    "checks": {
        *("core", "images", "data", "models", "objectives", "losses", "engine"),
        *("evaluation", "embeddings", "recipe", "config", "measure", "train", "build", "build_objective", "training_batches"),
    },
    "commands": None,  # anything but the command line
    "allocator": set(),
    "cli": {"allocator", "commands"},
    "version": set(),
    "__init__": set(),
}


def part_of(file: Path) -> str:
    return file.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(file: Path) -> list[str]:
    """Return the kinfold modules that a file imports anywhere, without the leading `kinfold.`."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names.append(node.module or "")
            names += [f"{node.module}.{alias.name}" for alias in node.names if (node.module or "") == "kinfold"]
    return [name.removeprefix("kinfold.") for name in names if name.startswith("kinfold.")]


def is_allowed(part: str, module: str) -> bool:
    top = module.split(".", maxsplit=1)[0]
    if top == part or top in RECORDS:
        return True
    allowed = LAYERS[part]
    if allowed is None:
        return top != "cli"
    return any(module == name or module.startswith(f"{name}.") for name in allowed)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_imports_flow_one_way(file):
    part = part_of(file)
    if part in RECORDS:
        bad = [module for module in imports_of(file) if module.split(".")[0] not in RECORDS]
    else:
        assert part in LAYERS, f"{part} has no place in the layers: give it one"
        bad = [module for module in imports_of(file) if not is_allowed(part, module)]
    assert not bad, f"{file.relative_to(SOURCE)} must not import {bad}"


def test_the_import_rule_can_fail():
    assert not is_allowed("engine", "objectives.proxy")
    assert not is_allowed("evaluation", "engine.fit")
    assert not is_allowed("losses", "data.table")
    assert is_allowed("engine", "objectives.base")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_files_and_functions_stay_small(file):
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300, "a file of over 300 lines holds more than one concept"
    assert file.stem not in FORBIDDEN_NAMES, "a concept is missing"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            n_lines = node.end_lineno - node.lineno + 1 - (len(docstring.splitlines()) if docstring else 0)
            assert n_lines <= 40, f"{node.name} has {n_lines} lines without its docstring"


def test_the_median_file_is_short():
    lengths = sorted(len(file.read_text(encoding="utf-8").splitlines()) for file in FILES if file.name != "__init__.py")
    assert lengths[len(lengths) // 2] < 120


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_every_file_says_what_it_holds_in_one_line(file):
    text = file.read_text(encoding="utf-8")
    if text.strip():
        docstring = ast.get_docstring(ast.parse(text))
        assert docstring and "\n" not in docstring.strip(), "the module docstring is one line"


def test_nothing_concrete_is_subclassed():
    classes = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                classes[node.name] = [base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases]
    abstract = {"Objective", "Settings", "KinfoldError", "BatchSampler"}
    concrete_parents = {
        name: [base for base in bases if base in classes and base not in abstract] for name, bases in classes.items()
    }
    assert {name: bases for name, bases in concrete_parents.items() if bases} == {}


def test_tables_equal_folders():
    from kinfold.losses import LOSSES
    from kinfold.objectives import OBJECTIVES

    losses = {file.stem for file in (SOURCE / "losses").glob("*.py")} - {"__init__"}
    objectives = {file.stem for file in (SOURCE / "objectives").glob("*.py")} - {"__init__", "base", *PARTS_OF_OBJECTIVES}
    assert losses == set(LOSSES)
    assert objectives == set(OBJECTIVES)


def test_every_source_file_in_the_pure_and_stateful_parts_has_a_test_of_its_name_or_a_contract():
    tests = {file.stem.removeprefix("test_") for file in Path(__file__).parent.rglob("test_*.py")}
    parts = ("images", "models", "engine", "evaluation")
    own_names = [
        file for file in chain.from_iterable((SOURCE / part).glob("*.py") for part in parts) if file.name != "__init__.py"
    ]
    share = sum(file.stem in tests for file in own_names) / len(own_names)
    assert share >= 0.5, f"only {share:.0%} of the files have a test of their name"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_the_library_touches_no_global_state(file):
    text = file.read_text(encoding="utf-8")
    assert ".cuda()" not in text
    if file.name not in ("train.py", "seeding.py"):  # both put the callers' generators back
        assert "random.seed(" not in text
        assert "manual_seed(" not in text.replace("Generator().manual_seed(", "").replace(").manual_seed(", "")
