"""What a person sees while training: speed, terms, time left, and warnings, on stderr."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from kinfold.console import ConsoleWatch
from kinfold.engine.alarms import RULES
from kinfold.engine.progress import Progress
from kinfold.engine.watch import Tick


def tick(**progress) -> Tick:
    values = {"proxies": 12.5, "loss": 12.5, "grad_norm": 1.0, "lr/trunk": 1e-4}
    return Tick(Progress(**{"epoch": 1, "batch": 7, "step": 50, **progress}), values, 40, 123.4, 0.25, 3700.0)


def test_a_line_holds_terms_speed_waiting_and_time_left(capsys):
    with ConsoleWatch(3, every=0.0) as watch:
        watch.tick(tick())
    captured = capsys.readouterr()
    assert captured.out == ""
    for part in ("epoch 2/3", "7/40", "proxies 12.5", "123 images/s", "waiting for data 25%", "1:01:40 left"):
        assert part in captured.err
    assert "loss 12.5" not in captured.err, "one term: its sum says nothing more"


def test_lines_are_rare_where_there_is_no_terminal(capsys):
    with ConsoleWatch(3, every=1000.0) as watch:
        for batch in range(1, 40):
            watch.tick(tick(batch=batch))
    assert capsys.readouterr().err == ""


def test_a_warning_is_shown_with_its_name_and_as_it_is(capsys):
    with ConsoleWatch(3, every=1000.0) as watch:
        watch.warned("proxies_still", "the proxies do not move: see [optimizer.proxies].")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "warning (proxies_still): the proxies do not move: see [optimizer.proxies].\n"


def test_a_warning_is_yellow_on_a_terminal():
    watch = ConsoleWatch(3)
    watch.console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", highlight=False)
    watch.warned("collapse", "all alike.")
    assert watch.console.file.getvalue() == "\x1b[33mwarning (collapse): all alike.\x1b[0m\n"


def test_every_name_of_a_warning_is_in_the_documentation():
    page = (Path(__file__).parents[1] / "docs" / "training-health.md").read_text(encoding="utf-8")
    assert [code for code in RULES if f"`{code}`" not in page] == []


@pytest.mark.parametrize(
    ("is_done", "text"), [(False, "going on at epoch 2, step 50"), (True, "this run ended before, after 50 steps")]
)
def test_resuming_says_where(capsys, is_done, text):
    ConsoleWatch(3).resumed(tick(is_done=is_done).progress)
    assert text in capsys.readouterr().err


def test_an_evaluation_is_a_line(capsys):
    ConsoleWatch(3).evaluated(1, {"recall_at_1": 0.5, "map_at_r": 0.25}, is_best=True)
    assert "epoch 2/3  validation: recall_at_1 0.5000  map_at_r 0.2500  (best)" in capsys.readouterr().err
