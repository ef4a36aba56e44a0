"""A tiny world for the loop: batches from a formula, a model of two layers, runs in a temporary folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from kinfold.core.pairs import pairs_from_labels
from kinfold.engine.fit import Task
from kinfold.engine.run import Run
from kinfold.engine.settings import FitSettings
from kinfold.losses import proxy_anchor
from kinfold.objectives import Proxies
from kinfold.records import Batch, Embedded

N_CLASSES, N_BATCHES, BATCH_SIZE = 4, 5, 8


class FormulaBatches:
    """Images that are their class's pattern plus noise seeded by (epoch, batch)."""

    def __init__(self, n_batches: int = N_BATCHES):
        self.n_batches, self.epochs_asked, self.position = n_batches, [], 0

    def __len__(self) -> int:
        return self.n_batches

    def prepare(self, epoch: int) -> None:
        pass

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Batch]:
        self.epochs_asked.append((epoch, start))
        for number in range(start, self.n_batches):
            generator = torch.Generator().manual_seed(1000 * epoch + number)
            label = torch.arange(BATCH_SIZE) % N_CLASSES
            pattern = torch.eye(N_CLASSES)[label].repeat_interleave(12, dim=1).reshape(BATCH_SIZE, 3, 4, 4)
            self.position = number + 1
            image = pattern + 0.5 * torch.randn(BATCH_SIZE, 3, 4, 4, generator=generator)
            yield Batch(image, label, torch.arange(BATCH_SIZE), torch.zeros(BATCH_SIZE, dtype=torch.long))


class TinyModel(nn.Module):
    """A convolution, batch norm and dropout (which draws from the global generator), then a head."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2))
        self.head = nn.Linear(32, 6)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        feature = self.trunk(image)
        return feature, self.head(feature)


class NoTrainSet:
    """A training set that no objective here asks for."""

    n_classes = N_CLASSES

    def embed(self, view: int = 0) -> Embedded:
        raise AssertionError("nobody should embed the training set")


@pytest.fixture
def world(tmp_path: Path):
    """Return a function that makes a fresh model, objective, task and run of one seed."""

    def make(folder: str = "run", *, objective=None, n_batches: int = N_BATCHES, evaluate=lambda: None):
        torch.manual_seed(7)
        model = TinyModel()
        objective = objective if objective is not None else Proxies(proxy_anchor, N_CLASSES, 6)
        run = Run(tmp_path / folder)
        run.folder.mkdir(parents=True, exist_ok=True)
        return model, objective, Task(FormulaBatches(n_batches), NoTrainSet(), evaluate), run

    return make


def settings(**loop) -> FitSettings:
    """Return settings for the tiny world."""
    groups = {key: loop.pop(key) for key in ("optimizer", "schedule", "stages") if key in loop}
    return FitSettings(loop={"epochs": 2, "log_every": 2, "accelerator": "cpu", **loop}, **groups)


def probe(model: nn.Module) -> Tensor:
    """Return the model's answer to fixed images, in evaluation mode."""
    model.eval()
    with torch.no_grad():
        return model(torch.linspace(-1, 1, 2 * 48).reshape(2, 3, 4, 4))[1]


def labels_match(label: Tensor) -> Tensor:
    """Return which pairs of a batch share a class."""
    return pairs_from_labels(label, label).positive
