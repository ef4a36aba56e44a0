"""The steps of CONTRIBUTING's "How to add a loss", carried out on a copy of the tree."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r'^( *)```python title="([^"]+)"\n(.*?)^ *```$', re.MULTILINE | re.DOTALL)


def blocks() -> dict[str, str]:
    """Return the text of each titled block by its file."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text[text.index("## How to add a loss") : text.index("## How to add a method")]
    return {title: textwrap.dedent(body) for _, title, body in BLOCK.findall(section)}


def carried_out(tree: Path) -> None:
    steps = blocks()
    (tree / "src/kinfold/losses/logistic.py").write_text(steps["src/kinfold/losses/logistic.py"], encoding="utf-8")
    imported, entry = steps["src/kinfold/losses/__init__.py"].splitlines()
    insert(tree / "src/kinfold/losses/__init__.py", "from kinfold.losses.multi_similarity", f"{imported}\n")
    insert(tree / "src/kinfold/losses/__init__.py", '    "multi_similarity"', f"{entry}\n")
    with (tree / "tests/oracles.py").open("a", encoding="utf-8") as oracles:
        oracles.write("\n\n" + steps["tests/oracles.py"])
    line = steps["tests/contracts/cases.py"].strip()
    insert(tree / "tests/contracts/cases.py", '    "multi_similarity": _setting', f"    {line}\n")


def insert(file: Path, before: str, text: str) -> None:
    content = file.read_text(encoding="utf-8")
    assert content.count(before) == 1, f"{file.name} has {content.count(before)} places {before!r}"
    file.write_text(content.replace(before, text + before), encoding="utf-8")


def contract(tree: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contracts/test_losses.py", "-k", "logistic"]
    return subprocess.run(command, check=False, cwd=tree, env=environment, capture_output=True, text=True)


@pytest.mark.slow
def test_a_loss_added_by_the_steps_passes_its_contract_and_a_wrong_one_does_not(tmp_path):
    tree = tmp_path / "tree"
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    carried_out(tree)
    good = contract(tree)
    assert good.returncode == 0, good.stdout
    assert int(re.search(r"(\d+) passed", good.stdout).group(1)) >= 10
    file = tree / "src/kinfold/losses/logistic.py"
    file.write_text(file.read_text(encoding="utf-8").replace("softplus(-alpha * s)", "softplus(alpha * s)"), encoding="utf-8")
    assert contract(tree).returncode == 1
