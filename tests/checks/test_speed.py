"""Loading against computing, with clocks that are known."""

from types import SimpleNamespace

import pytest
import torch

import kinfold
from kinfold.checks import speed as speeds
from kinfold.checks.speed import Loaded, Speed, load_some, measure_speed, speed_findings
from kinfold.records import Batch
from tests.checks.test_dry_step import rehearsed
from tests.checks.tiny import codes, embedder, proxies, recipe, the


def batches_in(times, clock):
    """Yield empty batches, each after so many seconds of a made-up clock."""
    for seconds in times:
        clock[0] += seconds
        yield Batch(torch.zeros(2, 3, 4, 4), *[torch.zeros(2, dtype=torch.long)] * 3)


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(speeds, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


def test_without_workers_every_batch_counts(clock):
    found = load_some(batches_in([0.5, 0.3, 0.3, 0.3, 9.0], clock), workers=0)
    assert found.seconds == pytest.approx(1.4 / 4) and len(found.batches) == 4


def bursts(workers, start, each, n):
    """Seconds between batches: workers begin together, and each needs `each` seconds a batch."""
    arrivals = sorted(start + each * (turn + 1) for _ in range(workers) for turn in range(n))
    return [b - a for a, b in zip([0.0, *arrivals], arrivals, strict=False)]


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("start", [0.0, 5.0])
def test_workers_are_timed_together_without_their_start(clock, workers, start, monkeypatch):
    monkeypatch.setattr(speeds, "LOADING_SECONDS", 100.0)
    found = load_some(batches_in(bursts(workers, start, 0.4, 9), clock), workers=workers)
    assert found.seconds == pytest.approx(0.4 / workers), "so many workers together load one batch in this time"
    assert len(found.batches) == 4


def test_slow_loading_ends_early(clock):
    found = load_some(batches_in([9.0, 1.0, 1.0], clock), workers=0)
    assert (found.seconds, len(found.batches)) == (9.0, 1)
    found = load_some(batches_in([3.0, 3.0, 1.0], clock), workers=2)
    assert (found.seconds, len(found.batches)) == (3.0, 2)
    assert load_some(batches_in([9.0], clock), workers=2).seconds == 9.0


def test_steps_are_timed_by_their_median_and_a_very_slow_one_is_not_repeated(tiny_photos, clock):
    table = kinfold.read_table(tiny_photos)
    rehearsal, batch = rehearsed(table, embedder(), proxies(table), recipe())
    made = []

    def step(fed):
        clock[0] += [0.5, 2.0, 0.75, 3.0][len(made) % 4]
        made.append(fed)

    rehearsal.step = step
    found = measure_speed(rehearsal, Loaded([batch] * 3, 0.1), precision="32-true", first_step=1.0)
    assert found.step == 0.75 and len(made) == 3
    assert (found.load, found.front, found.n_images) == (0.1, 0.0, 12)
    made.clear()
    assert measure_speed(rehearsal, Loaded([batch] * 9, 0.1), precision="32-true", first_step=29.0).step == 1.375
    assert len(made) == 4, "four seconds are enough"
    made.clear()
    assert measure_speed(rehearsal, Loaded([batch], 0.1), precision="32-true", first_step=31.0).step == 31.0
    assert not made


def told(load, step, *, n_batches=100, front=0.0, **changes):
    return speed_findings(Speed(load, front, step, 0.1, 10), recipe(**changes), n_batches=n_batches)


def test_slow_data_is_a_warning_that_names_the_key():
    finding = the(told(0.5, 0.25), "slow_data")
    assert finding.severity == "warning" and "batches.workers" in finding.remedy
    assert (
        "loads 20 images/s, training takes 40 images/s: 67% of the time is waiting for data, 1 min 40 s in the whole"
        in finding.message
    )


def test_data_that_is_fast_enough_or_a_short_run_is_a_note():
    assert codes(told(0.2, 0.25)) == [] and the(told(0.2, 0.25), "speed").message.endswith("44% of the time is waiting for data")
    assert codes(told(0.5, 0.25, n_batches=59)) == [], "59 seconds in two epochs"
    assert codes(told(0.5, 0.25, n_batches=61)) == ["slow_data"]


def test_workers_load_while_the_model_computes():
    finding = the(told(0.2, 0.25, batches={"workers": 2}), "speed")
    assert "0% of the time is waiting" in finding.message
    assert "50% of the time" in the(told(0.5, 0.25, n_batches=1000, batches={"workers": 2}), "slow_data").message


def test_a_frozen_part_reads_each_view_once():
    views = {"cache": {"views": 1}, "train": {"epochs": 9}}
    assert codes(told(0.5, 0.01, front=0.4, n_batches=100, **views)) == [], "50 s, not 450 s"
    assert "the frozen part takes 25 images/s" in the(told(0.5, 0.01, front=0.4, **views), "speed").message
