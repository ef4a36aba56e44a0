"""A run tells about itself: numbers in the log, warnings once and with advice, the same after a kill, nothing changed by asking."""

import json
import math
from functools import partial

import pytest
import torch
from torch import nn

from kinfold.core.health import alignment, effective_rank, similarity_gap, uniformity
from kinfold.core.mining import batch_hard, distance_weighted, semi_hard
from kinfold.engine.checkpoint import load_checkpoint, save_checkpoint
from kinfold.engine.fit import Task, fit
from kinfold.engine.health import HealthMonitor
from kinfold.engine.progress import Progress
from kinfold.engine.run import Run
from kinfold.engine.watch import NoWatch
from kinfold.losses import contrastive, multi_similarity, proxy_anchor, triplet
from kinfold.objectives import NovelClasses, Pairwise, Proxies
from kinfold.objectives.base import Objective
from kinfold.records import Batch, Embedded
from tests.engine.conftest import N_BATCHES, N_CLASSES, FormulaBatches, NoTrainSet, settings
from tests.killing import Killed

SPEED = {"images_per_second", "wait_share", "time"}
OF_EMBEDDINGS = {
    *("health/effective_rank", "health/uniformity", "health/alignment"),
    *("health/positive_similarity", "health/negative_similarity", "health/similarity_gap"),
}
OF_PAIRS = {"health/active_positive", "health/active_negative"}
OF_PROXIES = {"health/own_proxy_similarity", "health/other_proxy_similarity"}
OF_EPOCHS = {"health/proxies_never_hit", "health/proxy_drift"}


class Hears(NoWatch):
    """Notes warnings; dies at a step if asked to."""

    def __init__(self, kill_at=None):
        self.heard, self.kill_at = [], kill_at

    def warned(self, code, message):
        self.heard.append((code, message))

    def tick(self, tick):
        if tick.progress.step == self.kill_at:
            raise Killed


def health_of(row: dict) -> dict:
    return {key: value for key, value in row.items() if key.startswith("health/")}


def numbers(run: Run) -> list[dict]:
    return [{key: value for key, value in row.items() if key not in SPEED} for row in run.rows()]


def warnings_of(run: Run) -> list[dict]:
    return [row for row in run.rows() if "warning" in row]


@pytest.mark.parametrize(
    ("objective", "own", "epochs"),
    [(Pairwise(multi_similarity), OF_PAIRS, set()), (Proxies(proxy_anchor, N_CLASSES, 6), OF_PROXIES, OF_EPOCHS)],
    ids=["pairwise", "proxies"],
)
def test_every_row_has_the_numbers_and_an_epochs_last_row_those_of_the_epoch(world, objective, own, epochs):
    model, objective, task, run = world(objective=objective)
    fit(model, objective, task, settings=settings(epochs=2, log_every=2), run=run)
    rows = run.rows()
    assert [row["step"] for row in rows] == [2, 4, 5, 6, 8, 10]
    for row in rows:
        is_end = row["step"] % N_BATCHES == 0
        assert set(health_of(row)) == OF_EMBEDDINGS | own | (epochs if is_end else set())


def test_the_numbers_are_those_of_the_updates_own_embeddings(world):
    model, objective, task, run = world()
    embeddings = []
    model.register_forward_hook(lambda _, __, out: embeddings.append(out[1].detach().clone()))
    fit(model, objective, task, settings=settings(epochs=1, log_every=3), run=run)
    label = next(iter(FormulaBatches().epoch(0))).label
    for row in run.rows():
        x = embeddings[row["step"] - 1]
        sim = similarity_gap(x, label)
        expected = {
            "effective_rank": effective_rank(x),
            "uniformity": uniformity(x),
            "alignment": alignment(x, label),
            "positive_similarity": sim.positive,
            "negative_similarity": sim.negative,
            "similarity_gap": sim.gap,
        }
        assert {name: row[f"health/{name}"] for name in expected} == {name: float(value) for name, value in expected.items()}


def test_active_shares_are_those_of_the_gradient_that_trained(world):
    """Asked for afterwards, they equal the gradient that reached the similarities in the update itself."""
    seen = []

    def loss(sim, pairs):
        sim.register_hook(lambda grad: seen.append((grad.clone(), pairs)))
        return contrastive(sim, pairs, positive_threshold=0.6, negative_threshold=0.3)

    model, objective, task, run = world(objective=Pairwise(loss))
    fit(model, objective, task, settings=settings(epochs=1, log_every=1), run=run)
    in_training = seen[::2]
    assert len(seen) == 2 * N_BATCHES
    for row, (gradient, pairs) in zip(run.rows(), in_training, strict=True):
        for name, side in (("active_positive", pairs.positive), ("active_negative", pairs.negative)):
            assert row[f"health/{name}"] == pytest.approx(float((gradient[side] != 0).double().mean()))
    assert any(0 < row["health/active_negative"] < 1 for row in run.rows())


def test_what_is_not_defined_is_left_out_of_the_log(world):
    class Alone(FormulaBatches):
        def epoch(self, epoch, *, start=0):
            for batch in super().epoch(epoch, start=start):
                yield Batch(batch.image[:3], torch.arange(3), batch.item[:3], batch.view[:3])

    class Strange(Objective):
        def forward(self, batch, phase="main"):
            return Pairwise(contrastive)(batch)

        def health(self, batch):
            return {"odd": math.nan, "even": 2.0}

    model, objective, _, run = world(objective=Strange())
    fit(model, objective, Task(Alone(), NoTrainSet()), settings=settings(epochs=1), run=run)
    expected = {"health/effective_rank", "health/uniformity", "health/negative_similarity", "health/even"}
    assert set(health_of(run.rows()[0])) == expected


def test_how_often_is_logged_changes_nothing_that_is_trained(world):
    """Also where the choice of triplets draws from the global generator."""
    states = []
    for log_every in (1, 1000):
        pick = partial(distance_weighted, dim=6)
        model, objective, task, run = world(f"every {log_every}", objective=Pairwise(partial(triplet, pick=pick)))
        torch.manual_seed(5)
        fit(model, objective, task, settings=settings(epochs=2, log_every=log_every), run=run)
        states.append((model.state_dict(), torch.get_rng_state()))
    assert all(torch.equal(value, states[1][0][name]) for name, value in states[0][0].items())
    assert torch.equal(states[0][1], states[1][1])


def test_an_objective_that_draws_for_its_numbers_changes_no_training(world):
    class Draws(Objective):
        def __init__(self):
            super().__init__()
            self.inner = Pairwise(multi_similarity)

        def forward(self, batch, phase="main"):
            return self.inner(batch)

        def health(self, batch):
            return {"drawn": float(torch.rand(()))}

    monitor = HealthMonitor(Draws(), NoTrainSet())
    x = torch.randn(4, 3)
    batch = Embedded(x, x, torch.tensor([0, 0, 1, 1]), torch.arange(4), torch.zeros(4, dtype=torch.long))
    before = torch.get_rng_state()
    monitor.measure(batch, Progress(step=1))
    assert torch.equal(before, torch.get_rng_state())


class Noise:
    """Images of noise, with their class's pattern in them or with nothing to learn."""

    def __init__(self, *, strength: float, n_batches=40):
        self.strength, self.n_batches, self.position = strength, n_batches, 0
        self.pattern = torch.randn(8, 3, 4, 4, generator=torch.Generator().manual_seed(5))

    def __len__(self):
        return self.n_batches

    def prepare(self, epoch):
        pass

    def epoch(self, epoch, *, start=0):
        label = torch.arange(8).repeat_interleave(4)
        for number in range(start, self.n_batches):
            generator = torch.Generator().manual_seed(1000 * epoch + number)
            image = torch.randn(32, 3, 4, 4, generator=generator) + self.strength * self.pattern[label]
            self.position = number + 1
            yield Batch(image, label, torch.arange(32), torch.zeros(32, dtype=torch.long))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Flatten(), nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 16)

    def forward(self, image):
        feature = self.trunk(image)
        return feature, self.head(feature)


def train(folder, loss, *, strength, learning_rate, seed=0):
    torch.manual_seed(seed)
    run, watch = Run(folder), Hears()
    chosen = settings(epochs=4, log_every=10, optimizer={"learning_rate": learning_rate})
    fit(Perceptron(), Pairwise(loss), Task(Noise(strength=strength), NoTrainSet()), settings=chosen, run=run, watch=watch)
    return run, watch


@pytest.mark.parametrize("seed", [0, 1])
def test_hard_triplets_at_a_high_rate_on_noise_collapse_and_the_run_says_so(tmp_path, seed):
    hardest = partial(triplet, margin=0.2, pick=batch_hard)
    run, watch = train(tmp_path, hardest, strength=0.0, learning_rate=0.05, seed=seed)
    last = run.rows()[-1]
    assert last["pairs"] == pytest.approx(0.2, abs=1e-3), "the loss stands at the margin"
    assert last["health/negative_similarity"] > 0.99
    assert [code for code, _ in watch.heard] == ["collapse"]
    message = watch.heard[0][1]
    assert "semi_hard" in message
    assert "learning rate" in message
    assert warnings_of(run)[0]["step"] <= 110
    assert run.metrics()["warnings"] == warnings_of(run)
    assert json.loads(json.dumps(warnings_of(run)))[0]["message"] == message


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    "loss", [partial(triplet, margin=0.2, pick=partial(semi_hard, margin=0.2)), multi_similarity], ids=["triplet", "ms"]
)
def test_a_healthy_run_gives_no_warning(tmp_path, loss, seed):
    run, watch = train(tmp_path, loss, strength=0.4, learning_rate=1e-3, seed=seed)
    rows = [row for row in run.rows() if "loss" in row]
    assert rows[-1]["health/similarity_gap"] > rows[0]["health/similarity_gap"] + 0.1, "it learns"
    assert watch.heard == []
    assert warnings_of(run) == []
    assert run.metrics() == {}


def test_dead_batches_are_told_once_and_not_again_after_resuming(world):
    def satisfied():
        return Pairwise(lambda sim, pairs: contrastive(sim * 0 + 1.0, pairs, positive_threshold=0.0, negative_threshold=2.0))

    chosen = settings(epochs=14, log_every=5, checkpoint_steps=10)
    model, objective, task, whole = world("whole", objective=satisfied())
    watch = Hears()
    fit(model, objective, task, settings=chosen, run=whole, watch=watch)
    assert [code for code, _ in watch.heard].count("dead_batches") == 1
    assert next(row for row in warnings_of(whole) if row["warning"] == "dead_batches")["step"] == 50
    model, objective, task, run = world("killed", objective=satisfied())
    with pytest.raises(Killed):
        fit(model, objective, task, settings=chosen, run=run, watch=Hears(kill_at=53))
    model, objective, task, run = world("killed", objective=satisfied())
    resumed = Hears()
    fit(model, objective, task, settings=chosen, run=run, watch=resumed)
    assert "dead_batches" not in [code for code, _ in resumed.heard]
    assert numbers(run) == numbers(whole)
    assert run.metrics() == whole.metrics()


@pytest.mark.parametrize("options", [{}, {"checkpoint_steps": 1}, {"checkpoint_steps": 3, "gradient_accumulation_steps": 2}])
def test_a_killed_run_logs_the_same_numbers_and_warnings(world, options):
    """One class more than there are images of: the warning comes at the end of the second epoch."""
    chosen = settings(epochs=3, log_every=2, **options)

    def run_once(folder, kill_at=None):
        model, objective, task, run = world(folder, objective=Proxies(proxy_anchor, N_CLASSES + 1, 6))
        torch.manual_seed(1)
        watch = Hears(kill_at)
        try:
            fit(model, objective, task, settings=chosen, run=run, watch=watch)
        except Killed:
            return run_once(folder)
        return run

    whole = run_once("whole")
    assert [(row["warning"], row["epoch"]) for row in warnings_of(whole)] == [("proxies_never_hit", 1)]
    per_epoch = math.ceil(N_BATCHES / options.get("gradient_accumulation_steps", 1))
    for step in (2, 2 * per_epoch - 1, 2 * per_epoch, 2 * per_epoch + 1):  # in an epoch, and around the warning
        killed = run_once(f"killed at {step}", kill_at=step)
        assert numbers(killed) == numbers(whole), f"kill at step {step}"
        assert killed.metrics()["warnings"] == whole.metrics()["warnings"]
        states = [load_checkpoint(run.last)["health"] for run in (killed, whole)]
        assert repr(states[0]) == repr(states[1])


def test_a_checkpoint_without_health_is_gone_on_with(world):
    chosen = settings(epochs=3, checkpoint_steps=1)
    model, objective, task, run = world()
    with pytest.raises(Killed):
        fit(model, objective, task, settings=chosen, run=run, watch=Hears(kill_at=N_BATCHES + 2))
    state = load_checkpoint(run.last)
    del state["health"], state["format"]
    save_checkpoint(run.last, state)
    model, objective, task, run = world()
    fit(model, objective, task, settings=chosen, run=run)
    ends = [row for row in run.rows() if row["step"] % N_BATCHES == 0]
    assert [set(row) >= OF_EPOCHS for row in ends] == [True, False, True], "the epoch it was resumed in is not counted"


def test_still_proxies_are_told_and_those_frozen_by_the_settings_are_not(world):
    def heard(name, *, prepare=lambda objective: None, **chosen):
        model, objective, task, run = world(name, objective=Proxies(proxy_anchor, N_CLASSES, 6))
        prepare(objective)
        watch = Hears()
        fit(model, objective, task, settings=settings(epochs=12, **chosen), run=run, watch=watch)
        return [code for code, _ in watch.heard], [row for row in run.rows() if "health/proxy_drift" in row]

    codes, rows = heard("frozen", prepare=lambda objective: objective.proxies.requires_grad_(False))
    assert codes == ["proxies_still"]
    assert {row["health/proxy_drift"] for row in rows} == {0.0}
    slow = {"optimizer": {"proxies": {"learning_rate": 1e-9}}}
    assert heard("slow", **slow)[0] == ["proxies_still"]
    assert heard("resting", optimizer={"proxies": {"frozen_epochs": 12}})[0] == []
    assert heard("trained")[0] == []


def test_spinning_proxies_are_told(world):
    model, objective, task, run = world(objective=Proxies(proxy_anchor, N_CLASSES, 6))

    class Spins(Hears):
        def tick(self, tick):
            if tick.progress.batch == 1:
                with torch.no_grad():
                    objective.proxies *= -1

    watch = Spins()
    fit(model, objective, task, settings=settings(epochs=12), run=run, watch=watch)
    assert [code for code, _ in watch.heard] == ["proxies_spin"]


def test_an_epoch_whose_last_batches_cannot_be_read_has_its_numbers_too(world):
    class Broken(FormulaBatches):
        def epoch(self, epoch, *, start=0):
            for batch in super().epoch(epoch, start=start):
                if self.position == self.n_batches:
                    return
                yield batch

    for log_every, steps in ((3, [3, 4, 6, 8]), (2, [2, 4, 4, 6, 8, 8])):
        model, objective, _, run = world(f"every {log_every}")
        fit(model, objective, Task(Broken(), NoTrainSet()), settings=settings(log_every=log_every), run=run)
        assert [row["step"] for row in run.rows()] == steps
        assert [row["step"] for row in run.rows() if set(row) >= OF_EPOCHS] == [4, 8]
        model, objective, _, run = world(f"pairs, every {log_every}", objective=Pairwise(multi_similarity))
        fit(model, objective, Task(Broken(), NoTrainSet()), settings=settings(log_every=log_every), run=run)
        assert [row["step"] for row in run.rows()] == sorted(set(steps)), "no row says nothing"


def test_rules_see_no_row_twice_and_checkpoints_hold_plain_values(world):
    model, objective, task, run = world()
    fit(model, objective, task, settings=settings(epochs=3, log_every=1), run=run)
    health = load_checkpoint(run.last)["health"]
    assert [row["step"] for row in health["rows"]] == list(range(1, 3 * N_BATCHES + 1))
    assert len(health["drifts"]) == 3
    assert health["warnings"] == []
    assert health["is_open"] is False


@pytest.mark.parametrize("heeds_noise", [True, False])
def test_a_generator_that_heeds_no_noise_is_told(heeds_noise):
    objective = NovelClasses(Proxies(proxy_anchor, N_CLASSES, 6), pretraining_epochs=1)
    if not heeds_noise:
        objective.generator.network.layers[0].weight.data.zero_()
    monitor = HealthMonitor(objective, NoTrainSet())
    x, label = torch.randn(12, 6, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3
    batch = Embedded(x, x, label, torch.arange(12), torch.zeros(12, dtype=torch.long))
    progress = Progress()
    for progress.step in range(50, 101, 10):
        found = monitor.measure(batch, progress)
    assert (found["health/generated_variance"] < 1e-6) != heeds_noise
    assert [warning["warning"] for warning in monitor.new_warnings(progress)] == ([] if heeds_noise else ["generator_collapse"])
