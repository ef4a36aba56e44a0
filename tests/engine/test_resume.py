"""Killed at any step and resumed, a run ends with the same weights, log and state as one that was not."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from kinfold.engine.checkpoint import load_checkpoint, save_checkpoint
from kinfold.engine.fit import fit
from kinfold.engine.run import Run
from kinfold.engine.seeding import random_state, restore_random_state
from kinfold.engine.watch import NoWatch
from kinfold.errors import ConfigError, TrainingError
from kinfold.losses import proxy_anchor
from kinfold.objectives import Proxies
from kinfold.objectives.base import Objective
from kinfold.records import ParamGroup
from tests.engine.conftest import N_BATCHES, N_CLASSES, settings
from tests.killing import KillAt, Killed

SPEED = {"images_per_second", "wait_share", "time"}


STEPS_AFTER_TWO_EPOCHS = sum(range(1, 2 * N_BATCHES + 1))


class Remembering(Objective):
    """Counts its hooks in buffers, changes stage, and draws from the global generator."""

    stages = ("early", "late")

    def __init__(self):
        super().__init__()
        self.inner = Proxies(proxy_anchor, N_CLASSES, 6)
        self.epochs_started = nn.Buffer(torch.zeros(10, dtype=torch.long))
        self.steps_ended = nn.Buffer(torch.tensor(0))

    @property
    def stage(self):
        return "late" if self.epochs_started[1:].any() else "early"

    def forward(self, batch, phase="main"):
        return self.inner.terms(batch.embedding + 0.01 * torch.randn_like(batch.embedding), batch.label)

    def parameter_groups(self) -> list[ParamGroup]:
        return self.inner.parameter_groups()

    def on_epoch_start(self, epoch, train_set):
        self.epochs_started[epoch] += 1

    def on_step_end(self, step):
        self.steps_ended += step


def numbers(run: Run) -> list[dict]:
    return [{key: value for key, value in row.items() if key not in SPEED} for row in run.rows()]


def final_state(run: Run) -> dict:
    return load_checkpoint(run.last)


def assert_same(a, b, path=""):
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b), path
    elif isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a:
            assert_same(a[key], b[key], f"{path}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{path}[{i}]")
    else:
        assert repr(a) == repr(b), path  # nan is nan


CASES = {
    "plain": {},
    "every step": {"checkpoint_steps": 1},
    "every third": {"checkpoint_steps": 3},
    "accumulation": {"gradient_accumulation_steps": 2, "checkpoint_steps": 1},
    "one cycle, sgd": {
        "checkpoint_steps": 2,
        "optimizer": {"kind": "sgd", "learning_rate": 0.01},
        "schedule": {"kind": "one_cycle"},
    },
    "plateau, adam": {"optimizer": {"kind": "adam"}, "schedule": {"kind": "plateau", "patience": 0}},
    "stages": {
        "checkpoint_steps": 2,
        "stages": {"late": {"optimizer": {"kind": "rmsprop", "learning_rate": 1e-3}, "schedule": {"kind": "cosine"}}},
    },
    "early stopping": {"early_stopping_patience": 1},
    "rare evaluation": {"evaluate_every": 2, "checkpoint_steps": 2},
}


def evaluation(objective):
    """Return an evaluation that depends on the state alone and is best in the second of three epochs."""
    return lambda: {"recall_at_1": 1.0 - abs(float(objective.steps_ended) - STEPS_AFTER_TWO_EPOCHS) / 1000}


def run_to_the_end(world, folder, options, kill_at=None):
    objective = Remembering()
    model, objective, task, run = world(folder, objective=objective, evaluate=evaluation(objective))
    seed = 999 if run.last.exists() else 11  # the resumed process starts elsewhere
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    watch = NoWatch() if kill_at is None else KillAt(kill_at)
    fit(model, objective, task, settings=settings(epochs=3, **options), run=run, watch=watch)
    return run


@pytest.mark.parametrize("name", CASES)
def test_a_run_killed_at_any_step_ends_as_one_that_was_not(world, name):
    whole = run_to_the_end(world, "whole", CASES[name])
    n_steps = final_state(whole)["progress"]["step"]
    for step in range(1, n_steps + 1, 1 if name in ("plain", "stages") else 3):
        folder = f"killed at {step}"
        with pytest.raises(Killed):
            run_to_the_end(world, folder, CASES[name], kill_at=step)
        resumed = run_to_the_end(world, folder, CASES[name])
        assert numbers(resumed) == numbers(whole), f"log after a kill at step {step}"
        assert_same({**final_state(resumed), "log_size": 0}, {**final_state(whole), "log_size": 0}, f"kill at step {step}")
        assert_same({**load_checkpoint(resumed.best), "log_size": 0}, {**load_checkpoint(whole.best), "log_size": 0}, "best")


@pytest.mark.parametrize("number", range(1, 12))
def test_a_run_killed_between_any_two_writes_ends_as_one_that_was_not(world, monkeypatch, number):
    whole = run_to_the_end(world, "whole", {})
    written = []

    def dies_after(path, state):
        save_checkpoint(path, state)
        written.append(path)
        if len(written) == number:
            raise Killed

    monkeypatch.setattr("kinfold.engine.fit.save_checkpoint", dies_after)
    try:
        run_to_the_end(world, "killed", {})
    except Killed:
        monkeypatch.undo()
        run_to_the_end(world, "killed", {})
    killed = Run(whole.folder.parent / "killed")
    assert numbers(killed) == numbers(whole)
    for name in ("last", "best"):
        ours, theirs = (load_checkpoint(getattr(run, name)) for run in (killed, whole))
        assert_same({**ours, "log_size": 0}, {**theirs, "log_size": 0}, name)
    assert load_checkpoint(killed.best)["progress"]["step"] == 2 * N_BATCHES


def test_a_deleted_checkpoint_starts_the_run_again_with_an_empty_log(world):
    run = run_to_the_end(world, "run", {})
    n_rows = len(run.rows())
    run.last.unlink()
    assert len(run_to_the_end(world, "run", {}).rows()) == n_rows


def test_killed_twice_in_a_row_is_no_different(world):
    whole = run_to_the_end(world, "whole", {"checkpoint_steps": 2})
    for step in (4, 9):
        with pytest.raises(Killed):
            run_to_the_end(world, "twice", {"checkpoint_steps": 2}, kill_at=step)
    assert_same(final_state(run_to_the_end(world, "twice", {"checkpoint_steps": 2}))["model"], final_state(whole)["model"])


def test_resuming_inside_an_epoch_does_not_start_it_again(world):
    with pytest.raises(Killed):
        run_to_the_end(world, "run", {"checkpoint_steps": 1}, kill_at=N_BATCHES + 3)
    run = run_to_the_end(world, "run", {"checkpoint_steps": 1})
    assert final_state(run)["objective"]["epochs_started"].tolist() == [1, 1, 1] + [0] * 7


def test_a_finished_run_is_left_as_it_is(world):
    run = run_to_the_end(world, "run", {})
    before = run.last.read_bytes()
    run_to_the_end(world, "run", {})
    assert run.last.read_bytes() == before


def test_a_checkpoint_of_another_model_is_refused(world):
    run_to_the_end(world, "run", {})
    objective = Proxies(proxy_anchor, N_CLASSES + 1, 6)
    model, objective, task, run = world("run", objective=objective)
    with pytest.raises(TrainingError, match="another model, objective or optimiser"):
        fit(model, objective, task, settings=settings(epochs=3), run=run)


def test_a_broken_checkpoint_is_named(tmp_path):
    file = tmp_path / "last.pt"
    file.write_bytes(b"PK broken")
    with pytest.raises(TrainingError, match=r"last.pt cannot be read"):
        load_checkpoint(file)


def test_a_save_that_dies_leaves_the_old_checkpoint(tmp_path):
    file = tmp_path / "last.pt"
    save_checkpoint(file, {"step": 1})

    class Dies:
        def __reduce__(self):
            raise Killed

    with pytest.raises(Killed):
        save_checkpoint(file, {"step": 2, "x": Dies()})
    assert load_checkpoint(file)["step"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["last.pt"]


def test_random_state_comes_back_for_torch_numpy_and_python(tmp_path):
    draw = lambda: (torch.rand(3).tolist(), np.random.normal(size=3).tolist(), random.gauss(0, 1))  # noqa: E731
    draw()
    save_checkpoint(tmp_path / "a.pt", {"random": random_state()})
    expected = draw()
    restore_random_state(load_checkpoint(tmp_path / "a.pt")["random"])
    assert draw() == expected


def test_a_run_of_another_configuration_is_not_overwritten(tmp_path):
    run = Run(tmp_path / "run")
    assert run.open({"train": {"epochs": 3}, "seed": 0}) is False
    save_checkpoint(run.last, {"progress": {"step": 1}})
    assert run.open({"train": {"epochs": 3}, "seed": 0}) is True
    assert run.open({"train": {"epochs": 3}, "seed": 0, "evaluation": {"ks": [1]}}) is True
    with pytest.raises(ConfigError, match=r"differs in `train.epochs`"):
        run.open({"train": {"epochs": 4}, "seed": 0})


def test_a_run_without_an_update_is_begun_anew(tmp_path):
    run = Run(tmp_path / "run")
    run.open({"train": {"batch_size": 4000}})
    assert run.open({"train": {"batch_size": 40}}) is False
    save_checkpoint(run.last, {"progress": {"step": 0}})
    assert run.open({"train": {"batch_size": 4}}) is False
    assert run.config() == {"train": {"batch_size": 4}}


def test_a_folder_that_holds_something_else_is_not_used(tmp_path):
    for name in ("thesis.txt", "config.json"):  # a saved model has a config.json too
        folder = tmp_path / name.split(".")[0]
        folder.mkdir()
        (folder / name).write_text("{}")
        with pytest.raises(ConfigError, match="not empty and holds no run"):
            Run(folder).open({})
        assert (folder / name).read_text() == "{}"


def test_what_changes_nothing_that_is_trained_may_change(tmp_path):
    run = Run(tmp_path / "run")
    config = {"data": {"root": "a", "size": 8}, "batches": {"workers": 0}, "train": {"log_every": 1, "epochs": 2}}
    run.open(config)
    save_checkpoint(run.last, {"progress": {"step": 1}})
    assert run.open({"data": {"root": "b", "size": 8}, "batches": {"workers": 2}, "train": {"log_every": 5, "epochs": 2}})
    assert run.open({**config, "evaluation": {"ks": [1]}, "run": "elsewhere"})
    with pytest.raises(ConfigError, match=r"differs in `data.size`"):
        run.open({**config, "data": {"root": "a", "size": 9}})
    nested = Run(tmp_path / "nested")
    nested.open({"recipe": config})
    save_checkpoint(nested.last, {"progress": {"step": 1}})
    assert nested.open({"recipe": {**config, "batches": {"workers": 3}}})


def test_a_log_shorter_than_its_checkpoint_says_is_not_padded(tmp_path):
    run = Run(tmp_path)
    run.log({"a": 1.0, "b": float("nan")})
    run.cut_log(10**6)
    assert run.rows() == [{"a": 1.0, "b": None}]


PROGRAM = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
sys.path.insert(0, {root!r})
from tests.engine.conftest import FormulaBatches, NoTrainSet, TinyModel, settings
from kinfold.engine.fit import Task, fit
from kinfold.engine.run import Run
from kinfold.engine.watch import NoWatch
from kinfold.losses import proxy_anchor
from kinfold.objectives import Proxies

class Say(NoWatch):
    def tick(self, tick):
        print(tick.progress.step, flush=True)

import random, numpy
for seed in (torch.manual_seed, random.seed, numpy.random.seed):
    seed(7)
run = Run(Path(sys.argv[1]))
run.folder.mkdir(exist_ok=True)
fit(TinyModel(), Proxies(proxy_anchor, 4, 6), Task(FormulaBatches(), NoTrainSet()), settings=settings(epochs=4, checkpoint_steps=1),
    run=run, watch=Say())
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
def test_sigkill_and_resume_in_processes_of_their_own(tmp_path):
    program = [sys.executable, "-c", PROGRAM.format(root=str(Path(__file__).parents[2]))]
    subprocess.run([*program, str(tmp_path / "whole")], check=True, capture_output=True)
    for step in (1, 8):
        process = subprocess.Popen([*program, str(tmp_path / "killed")], stdout=subprocess.PIPE, text=True)
        with process.stdout as lines:
            for line in lines:
                if int(line) >= step:
                    process.send_signal(signal.SIGKILL)
                    break
        assert process.wait() == -signal.SIGKILL
    subprocess.run([*program, str(tmp_path / "killed")], check=True, capture_output=True)
    whole, killed = Run(tmp_path / "whole"), Run(tmp_path / "killed")
    assert_same({**final_state(killed), "log_size": 0}, {**final_state(whole), "log_size": 0})
    assert numbers(killed) == numbers(whole)
