"""The loop: what it minimises, how it counts, when it stops."""

import json
import math
import os
import signal
from itertools import pairwise

import pytest
import torch
from torch import nn

from kinfold.engine.checkpoint import load_checkpoint
from kinfold.engine.fit import fit
from kinfold.engine.watch import NoWatch
from kinfold.errors import ConfigError, Interrupted, TrainingError
from kinfold.losses import contrastive, proxy_anchor
from kinfold.objectives import Pairwise, Proxies
from kinfold.objectives.base import Objective
from kinfold.records import Losses, ParamGroup
from tests.engine.conftest import N_BATCHES, N_CLASSES, probe, settings


def test_training_lowers_the_loss(world):
    model, objective, task, run = world()
    fit(model, objective, task, settings=settings(epochs=8, optimizer={"learning_rate": 1e-2}), run=run)
    losses = [row["loss"] for row in run.rows()]
    assert losses[-1] < 0.5 * losses[0]


def test_one_update_equals_a_bare_torch_loop(world):
    model, objective, task, run = world()
    bare, twin, bare_task, _ = world("bare")
    torch.manual_seed(3)
    fit(model, objective, task, settings=settings(epochs=2, optimizer={"learning_rate": 1e-3, "weight_decay": 1e-2}), run=run)
    torch.manual_seed(3)
    optimizer = torch.optim.AdamW(
        [{"params": bare.parameters()}, {"params": twin.parameters(), "lr": 1e-3 * 100}], lr=1e-3, weight_decay=1e-2, fused=True
    )
    bare.train()
    for epoch in range(2):
        for batch in bare_task.batches.epoch(epoch):
            embedding = bare(batch.image)[1]
            loss = twin.terms(embedding, batch.label).total
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert torch.equal(probe(model), probe(bare))
    assert torch.equal(objective.proxies, twin.proxies)


@pytest.mark.parametrize("steps", [2, 3, 4])
def test_accumulation_averages_over_the_batches_that_the_window_really_holds(world, steps):
    model, objective, task, run = world(n_batches=5)
    bare, twin, bare_task, _ = world("bare", n_batches=5)
    rate = {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.0, "weight_decay": 0.0}
    torch.manual_seed(3)
    progress = fit(
        model, objective, task, settings=settings(epochs=1, gradient_accumulation_steps=steps, optimizer=rate), run=run
    )
    assert progress.step == math.ceil(5 / steps)
    torch.manual_seed(3)
    optimizer = torch.optim.SGD([{"params": bare.parameters()}, {"params": twin.parameters(), "lr": 10.0}], lr=0.1)
    bare.train()
    batches = list(bare_task.batches.epoch(0))
    for start in range(0, 5, steps):
        window = batches[start : start + steps]
        optimizer.zero_grad()
        for batch in window:
            (twin.terms(bare(batch.image)[1], batch.label).total / len(window)).backward()
        optimizer.step()
    torch.testing.assert_close(probe(model), probe(bare), rtol=1e-4, atol=1e-5)


def test_a_parameter_of_the_objective_in_no_group_is_named(world):
    class Forgetful(Objective):
        def __init__(self):
            super().__init__()
            self.proxies = nn.Parameter(torch.zeros(4, 6))
            self.boundary = nn.Parameter(torch.zeros(4))

        def forward(self, batch, phase="main"):
            return Losses({"x": (batch.embedding @ self.proxies.T + self.boundary).sum()})

        def parameter_groups(self):
            return [ParamGroup("proxies", [self.proxies])]

    model, objective, task, run = world(objective=Forgetful())
    with pytest.raises(ConfigError, match="`boundary` are in no parameter group"):
        fit(model, objective, task, settings=settings(), run=run)


def test_a_misspelt_group_names_the_nearest(world):
    model, objective, task, run = world()
    with pytest.raises(ConfigError, match="did you mean `proxies`"):
        fit(model, objective, task, settings=settings(optimizer={"proxys": {"learning_rate": 1.0}}), run=run)


class Poison(Objective):
    """A loss that is not finite at one step, or whose gradient is not."""

    def __init__(self, at: int, what: str):
        super().__init__()
        self.at, self.what, self.seen = at, what, 0

    def forward(self, batch, phase="main"):
        self.seen += 1
        x = batch.embedding.square().mean()
        if self.seen == self.at:
            x = x * math.nan if self.what == "loss" else torch.sqrt(x * 0.0)
        return Losses({"good": batch.embedding.mean(), "bad": x})


@pytest.mark.parametrize(
    ("what", "message"), [("loss", "`bad` is nan at step 7"), ("gradient", "gradient norm is (nan|inf) at step 7")]
)
def test_a_value_that_is_not_finite_stops_with_step_term_and_norm_and_keeps_the_last_good_checkpoint(world, what, message):
    model, objective, task, run = world(objective=Poison(7, what))
    with pytest.raises(TrainingError, match=message):
        fit(model, objective, task, settings=settings(epochs=3), run=run)
    state = load_checkpoint(run.last)
    assert state["progress"]["step"] == N_BATCHES
    assert all(torch.isfinite(value).all() for value in state["model"].values())
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_batches_without_an_active_pair_are_counted_and_logged(world):
    satisfied = Pairwise(lambda sim, pairs: contrastive(sim * 0 + 1.0, pairs, positive_threshold=0.0, negative_threshold=2.0))
    model, objective, task, run = world(objective=satisfied)
    progress = fit(model, objective, task, settings=settings(), run=run)
    assert progress.n_inactive == progress.n_batches == 2 * N_BATCHES
    assert run.rows()[-1]["n_inactive"] == 2 * N_BATCHES
    model, objective, task, run = world("active")
    assert fit(model, objective, task, settings=settings(), run=run).n_inactive == 0


class TwoPhases(Objective):
    """A generator and proxies, trained in turn from one forward pass of the model."""

    phases = ("generator", "embedder")

    def __init__(self):
        super().__init__()
        self.generator = nn.Linear(6, 6)
        self.inner = Proxies(proxy_anchor, N_CLASSES, 6)
        self.seen: list[tuple[str, torch.Tensor, torch.Tensor]] = []

    def forward(self, batch, phase="main"):
        self.seen.append((phase, self.generator.weight.detach().clone(), self.inner.proxies.detach().clone()))
        if phase == "generator":
            return Losses({"generated": (self.generator(batch.embedding.detach()) - batch.embedding.detach()).square().mean()})
        return self.inner.terms(batch.embedding, batch.label)

    def parameter_groups(self):
        return [ParamGroup("generator", list(self.generator.parameters())), *self.inner.parameter_groups()]


@pytest.mark.parametrize("accumulation", [1, 3])
def test_phases_train_their_own_parameters_from_one_forward_pass(world, accumulation):
    model, objective, task, run = world(objective=TwoPhases())
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))
    before = {name: p.clone() for name, p in [*model.named_parameters(), *objective.named_parameters()]}
    fit(model, objective, task, settings=settings(epochs=1, gradient_accumulation_steps=accumulation), run=run)
    assert len(calls) == N_BATCHES
    after = dict([*model.named_parameters(), *objective.named_parameters()])
    assert all(not torch.equal(before[name], after[name]) for name in before if "trunk.0.bias" not in name)
    assert {"generated", "proxies", "loss"} <= set(run.rows()[0])
    for (phase, generator, proxies), (_, next_generator, next_proxies) in pairwise(objective.seen):
        if accumulation == 1:  # between two calls, exactly the phase's own parameters have moved
            assert torch.equal(generator, next_generator) == (phase == "embedder")
            assert torch.equal(proxies, next_proxies) == (phase == "generator")


class Staged(Objective):
    """Changes its stage after the first epoch."""

    stages = ("pretrain", "joint")

    def __init__(self):
        super().__init__()
        self.inner = Proxies(proxy_anchor, N_CLASSES, 6)
        self.register_buffer("joint", torch.tensor(False))

    @property
    def stage(self):
        return "joint" if self.joint else "pretrain"

    def forward(self, batch, phase="main"):
        return self.inner.terms(batch.embedding, batch.label)

    def parameter_groups(self):
        return self.inner.parameter_groups()

    def on_epoch_start(self, epoch, train_set):
        self.joint.fill_(epoch >= 1)


def test_a_new_stage_brings_its_own_optimiser_and_schedule(world):
    model, objective, task, run = world(objective=Staged())
    stages = {"joint": {"optimizer": {"kind": "sgd", "learning_rate": 0.5}, "schedule": {"kind": "cosine"}}}
    fit(
        model,
        objective,
        task,
        settings=settings(epochs=3, log_every=1, optimizer={"learning_rate": 1e-3}, stages=stages),
        run=run,
    )
    rates = [row["lr/model"] for row in run.rows()]
    assert rates[:N_BATCHES] == [1e-3] * N_BATCHES
    assert rates[N_BATCHES] == 0.5
    assert rates[-1] == pytest.approx(0.0)


def test_the_best_epoch_has_a_checkpoint_and_patience_stops_early(world):
    values = iter([0.1, 0.5, 0.4, 0.3, 0.9])
    model, objective, task, run = world(evaluate=lambda: {"recall_at_1": next(values)})
    progress = fit(model, objective, task, settings=settings(epochs=5, early_stopping_patience=2), run=run)
    assert (progress.best, progress.best_epoch, progress.epoch) == (0.5, 1, 4)
    assert load_checkpoint(run.best)["progress"]["step"] == 2 * N_BATCHES
    assert [row["val/recall_at_1"] for row in run.rows() if "val/recall_at_1" in row] == [0.1, 0.5, 0.4, 0.3]


def test_an_unknown_monitor_names_the_metrics_there_are(world):
    model, objective, task, run = world(evaluate=lambda: {"recall_at_1": 0.5})
    with pytest.raises(ConfigError, match="did you mean `recall_at_1`"):
        fit(model, objective, task, settings=settings(monitor="recal_at_1"), run=run)


def test_a_frozen_group_stays_and_then_trains(world):
    class Named(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, image):
            return self.inner(image)

        def parameter_groups(self):
            return [
                ParamGroup("trunk", list(self.inner.trunk.parameters())),
                ParamGroup("head", list(self.inner.head.parameters())),
            ]

    model, objective, task, run = world()
    model = Named(model)
    start = {name: value.clone() for name, value in model.state_dict().items()}
    seen = []

    class Look(NoWatch):
        def tick(self, tick):
            if tick.progress.step == N_BATCHES:
                seen.append({name: torch.equal(value, start[name]) for name, value in model.state_dict().items()})

    fit(model, objective, task, settings=settings(epochs=2, optimizer={"trunk": {"frozen_epochs": 1}}), run=run, watch=Look())
    stayed = seen[0]
    assert all(stayed[name] for name in stayed if "trunk" in name), "a frozen trunk keeps weights and statistics"
    assert not stayed["inner.head.weight"]
    assert not torch.equal(model.state_dict()["inner.trunk.0.weight"], start["inner.trunk.0.weight"])


def test_frozen_batch_norm_stays_frozen_after_evaluations(world):
    model, objective, task, run = world(evaluate=lambda: probe(model) is not None and {"recall_at_1": 0.5})
    mean = model.trunk[1].running_mean.clone()
    fit(model, objective, task, settings=settings(epochs=3, frozen_batch_norm=True), run=run)
    assert torch.equal(model.trunk[1].running_mean, mean)
    assert not torch.equal(model.trunk[1].weight, torch.ones(8)), "its affine weights train"


@pytest.mark.parametrize("kind", ["adamw", "adam", "sgd", "rmsprop"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_optimiser_and_precision_trains(world, kind, precision):
    model, objective, task, run = world()
    before = probe(model)
    fit(model, objective, task, settings=settings(precision=precision, optimizer={"kind": kind, "learning_rate": 1e-3}), run=run)
    assert torch.isfinite(probe(model)).all()
    assert not torch.equal(before, probe(model))


def test_float16_without_an_accelerator_is_refused(world):
    model, objective, task, run = world()
    with pytest.raises(ConfigError, match="needs an accelerator: train in 'bf16-mixed'"):
        fit(model, objective, task, settings=settings(precision="fp16"), run=run)


@pytest.mark.parametrize("clip", [{"clip_norm": 1e-3}, {"clip_value": 1e-4}])
def test_clipping_bounds_an_update(world, clip):
    rate = {
        "kind": "sgd",
        "learning_rate": 1.0,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "groups": {"proxies": {"learning_rate": 1.0}},
    }
    model, objective, task, run = world(n_batches=1)
    before = torch.cat([p.detach().flatten().clone() for p in [*model.parameters(), *objective.parameters()]])
    fit(model, objective, task, settings=settings(epochs=1, optimizer=rate, **clip), run=run)
    step = torch.cat([p.detach().flatten() for p in [*model.parameters(), *objective.parameters()]]) - before
    assert 0 < step.norm() <= 1.001e-3 if "clip_norm" in clip else 0 < step.abs().max() <= 1.01e-4


def test_the_log_is_one_json_object_a_line(world):
    model, objective, task, run = world()
    fit(model, objective, task, settings=settings(), run=run)
    rows = [json.loads(line) for line in run.log_file.read_text().splitlines()]
    assert {
        "epoch",
        "step",
        "loss",
        "proxies",
        "grad_norm",
        "lr/model",
        "lr/proxies",
        "images_per_second",
        "wait_share",
        "time",
    } <= set(rows[0])
    assert [row["step"] for row in rows] == [2, 4, 5, 6, 8, 10]


def test_plateau_lowers_the_rate(world):
    model, objective, task, run = world(evaluate=lambda: {"recall_at_1": 0.5})
    schedule = {"kind": "plateau", "patience": 0, "gamma": 0.5}
    fit(
        model,
        objective,
        task,
        settings=settings(epochs=3, optimizer={"learning_rate": 1.0e-3}, schedule=schedule, log_every=5),
        run=run,
    )
    assert [row["lr/model"] for row in run.rows() if "lr/model" in row] == pytest.approx([1e-3, 1e-3, 5e-4])


def test_a_groups_own_weight_decay_reaches_its_optimiser(world):
    class Decayed(Objective):
        def __init__(self):
            super().__init__()
            self.inner = Proxies(proxy_anchor, N_CLASSES, 6)

        def forward(self, batch, phase="main"):
            return Losses({"none": 0 * self.inner(batch).total})

        def parameter_groups(self):
            return [ParamGroup("proxies", [self.inner.proxies], weight_decay=0.5)]

    model, objective, task, run = world(objective=Decayed(), n_batches=1)
    before = objective.inner.proxies.detach().clone()
    fit(model, objective, task, settings=settings(epochs=1, optimizer={"learning_rate": 0.1, "weight_decay": 0.0}), run=run)
    torch.testing.assert_close(objective.inner.proxies.detach(), before * (1 - 0.1 * 0.5))


def test_objective_and_model_are_in_training_mode_after_an_evaluation(world):
    modes = []

    class Look(NoWatch):
        def tick(self, tick):
            modes.append((model.training, objective.training))

    def evaluate():
        model.eval()
        objective.eval()
        return {"recall_at_1": 0.5}

    model, objective, task, run = world(evaluate=evaluate)
    fit(model, objective, task, settings=settings(), run=run, watch=Look())
    assert set(modes) == {(True, True)}


def test_everything_frozen_is_one_clear_error(world):
    model, objective, task, run = world(objective=Pairwise(contrastive))
    with pytest.raises(ConfigError, match="nothing trains in epoch 1"):
        fit(model, objective, task, settings=settings(optimizer={"model": {"frozen_epochs": 1}}), run=run)
    assert all(p.requires_grad for p in model.parameters()), "a failed run gives the model back as it was"


def test_clipping_values_does_not_hide_an_infinite_gradient(world):
    model, objective, task, run = world(objective=Poison(2, "gradient"))
    with pytest.raises(TrainingError, match="gradient norm is (nan|inf) at step 2"):
        fit(model, objective, task, settings=settings(clip_value=1.0), run=run)


def test_weights_that_are_not_finite_are_never_saved(world):
    class Spoils(NoWatch):
        def tick(self, tick):
            if tick.progress.step == 3:
                with torch.no_grad():
                    objective.proxies.fill_(math.nan)

    model, objective, task, run = world()
    with pytest.raises(TrainingError, match="the objective's `proxies` is not finite after step 3"):
        fit(model, objective, task, settings=settings(checkpoint_steps=1), run=run, watch=Spoils())
    assert load_checkpoint(run.last)["progress"]["step"] == 2


def test_a_misspelt_stage_names_the_stages_there_are(world):
    model, objective, task, run = world(objective=Staged())
    with pytest.raises(ConfigError, match="`stage.jiont` is no stage of this objective: did you mean `joint`"):
        fit(model, objective, task, settings=settings(stages={"jiont": {}}), run=run)


@pytest.mark.parametrize("accelerator", ["cuda", "mps"])
def test_an_accelerator_that_is_not_there_is_one_clear_error(world, accelerator):
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("this machine has one")
    model, objective, task, run = world()
    with pytest.raises(ConfigError, match="is not there: use 'auto' or 'cpu'"):
        fit(model, objective, task, settings=settings(accelerator=accelerator), run=run)


def test_a_stop_during_an_evaluation_is_immediate_and_loses_nothing(world):
    def evaluate():
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the evaluation went on")

    model, objective, task, run = world(evaluate=evaluate)
    with pytest.raises(Interrupted, match=r"stopped at step 5 .* is saved"):
        fit(model, objective, task, settings=settings(), run=run)
    assert load_checkpoint(run.last)["progress"]["batch"] == N_BATCHES


def test_a_second_stop_does_not_promise_what_was_not_saved(world):
    class StopTwice(NoWatch):
        def tick(self, tick):
            if tick.progress.step == 3:
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)

    model, objective, task, run = world()
    with pytest.raises(Interrupted, match="holds the checkpoint of step 0"):
        fit(model, objective, task, settings=settings(), run=run, watch=StopTwice())


def test_a_stop_request_saves_and_says_how_to_go_on(world):
    class Stop(NoWatch):
        def tick(self, tick):
            if tick.progress.step == 7:
                os.kill(os.getpid(), signal.SIGINT)

    model, objective, task, run = world()
    with pytest.raises(Interrupted, match=r"stopped at step 7 \(epoch 2\).*the same command goes on"):
        fit(model, objective, task, settings=settings(), run=run, watch=Stop())
    assert load_checkpoint(run.last)["progress"]["step"] == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
