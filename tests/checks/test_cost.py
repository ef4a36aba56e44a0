"""The estimate of time, against a clock that walks through a run."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.checks.cost import Afterwards, Amounts, seconds_of_run, time_finding
from kinfold.checks.speed import Speed, over_stages
from tests.checks.tiny import recipe

SPEED = Speed(load=0.5, front=0.0, step=2.0, embed=0.25, n_images=10)


class Walk:
    """Walks through a run batch by batch, and adds up seconds."""

    def __init__(self, speed, made, amounts):
        self.speed, self.made, self.amounts, self.n = speed, made, amounts, speed.n_images
        self.spent, self.kept = {"training": 0.0, "validation": 0.0, "measuring": 0.0}, set()

    def with_data(self, compute):
        return max(self.speed.load, compute) if self.made.batches.workers else self.speed.load + compute

    def front(self, name, n_images, part):
        for start in range(0, n_images, self.n):
            if self.speed.front and (name, start) not in self.kept:
                self.kept.add((name, start))
                self.spent[part] += self.with_data(self.speed.front)

    def embed(self, name, n_images, part):
        self.front(name, n_images, part)
        for _ in range(0, n_images, self.n):
            self.spent[part] += self.speed.embed if self.speed.front else self.with_data(self.speed.embed)

    def epoch(self, epoch):
        amounts, train = self.amounts, self.made.train
        if amounts.embeds_train_set:
            self.embed("train", amounts.n_train, "training")
        self.front(epoch % self.made.cache.views if self.made.cache.views else 0, amounts.n_train, "training")
        for _ in range(amounts.n_batches):
            self.spent["training"] += self.speed.step if self.speed.front else self.with_data(self.speed.step)
        if epoch + 1 == train.epochs or (epoch + 1) % train.evaluate_every == 0:
            self.embed("val", amounts.n_val, "validation")

    def run(self):
        for epoch in range(self.made.train.epochs):
            self.epoch(epoch)
        self.embed("test", self.amounts.afterwards.n_measured, "measuring")
        return self.spent


@settings(max_examples=60, deadline=None)
@given(
    train=st.fixed_dictionaries({"epochs": st.integers(1, 6), "evaluate_every": st.integers(1, 4)}),
    workers=st.sampled_from([0, 2]),
    front=st.sampled_from([0.0, 0.75]),
    views=st.integers(1, 4),
    images=st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 3)),
    asks=st.booleans(),
)
def test_the_estimate_is_what_a_walk_through_the_run_takes(train, workers, front, views, images, asks):
    n_train, n_val, n_test = (10 * n for n in images)
    made = recipe(train=train, batches={"workers": workers}, cache={"views": views} if front else {})
    speed = Speed(0.5, front, 2.0, 0.25, 10)
    amounts = Amounts(n_train // 10, n_train, n_val, asks, Afterwards(n_test))
    assert seconds_of_run(speed, made, amounts) == pytest.approx(Walk(speed, made, amounts).run())


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("front", [0.0, 0.75])
def test_stages_take_what_they_would_take_alone_one_after_the_other(workers, front):
    steps, epochs = {"pretraining": 0.3, "joint": 1.5}, {"pretraining": 3, "joint": 2}  # loading, 0.5 s, lies between
    speeds = {name: Speed(0.5, front, step, 0.25, 10) for name, step in steps.items()}
    amounts = Amounts(n_batches=4, n_train=40)
    both = over_stages(speeds, epochs)
    spent = 0.0
    for name, n in epochs.items():
        made = recipe(train={"epochs": n}, batches={"workers": workers}, cache={"views": 1} if front else {})
        spent += Walk(speeds[name], made, amounts).run()["training"]
    if front:  # the second walk need not go through the frozen part again
        spent -= 4 * (max(0.5, front) if workers else 0.5 + front)
    made = recipe(train={"epochs": 5}, batches={"workers": workers}, cache={"views": 1} if front else {})
    assert seconds_of_run(both, made, amounts)["training"] == pytest.approx(spent)
    assert "780 ms to train (pretraining 300 ms, joint 1.5 s)" in time_finding({}, made, amounts, both).message


def test_the_note_says_how_it_was_reckoned():
    made = recipe(train={"epochs": 30})
    amounts = Amounts(100, 1000, 100, False, Afterwards(500))
    found = time_finding(seconds_of_run(SPEED, made, amounts), made, amounts, SPEED)
    assert found.severity == "note"
    assert "about 2 h 9 min: training 2 h 5 min + validation 3 min 45 s + measuring 37.5 s" in found.message
    assert "30 epochs of 100 batches; per batch of 10 images 500 ms to load, 2.0 s to train, 250 ms to embed" in found.message
    stops = recipe(train={"epochs": 30, "early_stopping_patience": 3})
    assert "at most about" in time_finding(seconds_of_run(SPEED, stops, amounts), stops, amounts, SPEED).message
