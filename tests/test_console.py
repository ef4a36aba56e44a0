"""What a person sees while training: speed, terms, time left, and warnings, on stderr."""

import pytest

from kinfold.console import ConsoleWatch
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


def test_batches_without_an_active_pair_are_reported_once(capsys):
    with ConsoleWatch(3, every=1000.0) as watch:
        watch.tick(tick(n_batches=49, n_inactive=49))
        assert capsys.readouterr().err == ""
        watch.tick(tick(n_batches=50, n_inactive=40))
        watch.tick(tick(n_batches=51, n_inactive=41))
    assert capsys.readouterr().err.count("batches had no active pair") == 1


@pytest.mark.parametrize(
    ("is_done", "text"), [(False, "going on at epoch 2, step 50"), (True, "this run ended before, after 50 steps")]
)
def test_resuming_says_where(capsys, is_done, text):
    ConsoleWatch(3).resumed(tick(is_done=is_done).progress)
    assert text in capsys.readouterr().err


def test_an_evaluation_is_a_line(capsys):
    ConsoleWatch(3).evaluated(1, {"recall_at_1": 0.5, "map_at_r": 0.25}, is_best=True)
    assert "epoch 2/3  validation: recall_at_1 0.5000  map_at_r 0.2500  (best)" in capsys.readouterr().err
