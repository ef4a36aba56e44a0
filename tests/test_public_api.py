"""What is public is what can be imported, documented and named in the reference."""

import importlib
import inspect
import subprocess
import sys

import pytest

import kinfold


def test_all_is_sorted_and_complete():
    assert kinfold.__all__ == sorted(set(kinfold.__all__))
    assert set(dir(kinfold)) == set(kinfold.__all__)


@pytest.mark.parametrize("name", kinfold.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name):
    thing = getattr(kinfold, name)
    if name != "__version__":
        assert inspect.getdoc(thing), f"{name} has no docstring"
        assert getattr(importlib.import_module(kinfold._HOME[name]), name) is thing


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'skore'"):
        kinfold.skore  # noqa: B018


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_score_costs_little_beyond_torch():
    code = """
import time, torch
begin = time.perf_counter()
import kinfold
kinfold.score
print(time.perf_counter() - begin)
"""
    assert min(float(run(code)) for _ in range(3)) <= 0.5


def test_help_ends_quickly_and_without_torch():
    code = """
import sys, time
begin = time.perf_counter()
sys.argv = ["kinfold", "--help"]
import kinfold.cli
try:
    kinfold.cli.main()
except SystemExit as end:
    assert not end.code
assert "torch" not in sys.modules
print(time.perf_counter() - begin)
"""
    assert min(float(run(code).splitlines()[-1]) for _ in range(3)) < 1.0


def test_importing_the_package_imports_nothing_heavy():
    heavy = ("torch", "timm", "torchvision", "matplotlib", "sklearn", "pandas", "lightning_fabric")
    assert run(f"import sys, kinfold; print([name for name in {heavy!r} if name in sys.modules])").strip() == "[]"
