"""The generated classes of a run: its generator and proxies, read from the checkpoint."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.hierarchy import Name
from kinfold.core.similarity import SIMILARITIES, cosine
from kinfold.engine.checkpoint import load_checkpoint
from kinfold.engine.run import Run
from kinfold.errors import DataError
from kinfold.learned_groups import class_names
from kinfold.objectives.generator import ConditionalGenerator
from kinfold.records import Similarity

NETWORK = "generator.network."


@dataclass(frozen=True, eq=False)
class GeneratedClasses:
    """What a run with `NovelClasses` learned beside its model.

    Attributes:
        run: the run.
        network: its generator, in evaluation mode.
        novel_proxies: one a generated class; `None` over pairs, and where existing classes are generated.
        real_proxies: of the training classes; `None` over pairs.
        classes: names of the training classes.
        existing: the generated classes are the real ones (L2A-EC).
        similarity: the run's; cosine where its name is not known.
    """

    run: Run
    network: ConditionalGenerator
    novel_proxies: Float[Tensor, "n d"] | None
    real_proxies: Float[Tensor, "c d"] | None
    classes: tuple[Name, ...]
    existing: bool
    similarity: Similarity = cosine

    @property
    def n_generated(self) -> int:
        """Number of classes that the generator makes."""
        return self.network.n_classes

    @torch.no_grad()
    def vectors(self, code: Int[Tensor, " k"], n: int, *, seed: int = 0) -> tuple[Float[Tensor, "t d"], Int[Tensor, " t"]]:
        """Return `n` unit vectors of each of these generated classes, and their classes."""
        label = code.repeat_interleave(n)
        noise = np.random.default_rng(seed).standard_normal((len(label), self.network.noise_dim), dtype=np.float32)
        return self.network(torch.from_numpy(noise), label), label


def generated_classes(run: Run | str | Path) -> GeneratedClasses:
    """Read what a run generates, as its saved model knew it: the best epoch's where classes were held out, else the last one's.

    Args:
        run: a run, or its folder.

    Raises:
        DataError: no run, no checkpoint yet, or a run whose objective generates nothing.
    """
    run = run if isinstance(run, Run) else Run(run)
    if not run.exists:
        raise DataError(f"{run.folder} is no run: name a folder that `kinfold train` wrote, such as runs/l2a_nc.")
    file = run.best if run.best.exists() else run.last
    if not file.exists():
        raise DataError(
            f"{run.folder} has no checkpoint yet: train it first (a grid keeps none unless it says keep_models = true)."
        )
    state = load_checkpoint(file)["objective"]
    if f"{NETWORK}out.weight" not in state:
        raise DataError(
            f"{run.folder} generates no classes: its objective is not l2a_nc, or has no novel class (objective.novel_ratio = 0)."
        )
    described = run.config().get("objective_object", {})
    settings = described.get("settings", {})
    n_classes = settings.get("n_classes")
    names = () if n_classes is None else class_names(run, n_classes)
    real = next((tensor for name, tensor in state.items() if re.fullmatch(r"(base\.)+proxies", name)), None)
    novel, existing = state.get("novel_proxies"), bool(settings.get("existing"))
    return GeneratedClasses(run, _network(state), novel, real, names, existing, _similarity(described))


def _similarity(described: Mapping[str, Any] | None) -> Similarity:
    """Return the similarity of the objective or, where it says none, of what it builds on."""
    while described:
        name = described.get("settings", {}).get("similarity")
        if name is not None:
            return SIMILARITIES.get(str(name), cosine)
        described = described.get("base")
    return cosine


def _network(state: Mapping[str, Tensor]) -> ConditionalGenerator:
    """Rebuild the generator from its tensors, whose shapes say everything."""
    own = {name.removeprefix(NETWORK): tensor for name, tensor in state.items() if name.startswith(NETWORK)}
    hidden, noise_dim = own["layers.0.weight"].shape
    sizes = {"noise_dim": noise_dim, "hidden_dim": hidden}
    network = ConditionalGenerator(len(own["norms.0.gamma"]), len(own["out.weight"]), **sizes)
    network.load_state_dict(own)
    return network.eval()
