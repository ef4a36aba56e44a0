"""L2A-NC: a generator invents embeddings of novel classes, and the model learns to tell them and the real ones apart."""

import inspect
from functools import partial
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from kinfold.core.divergence import Divergence, gauss_kl
from kinfold.core.novelty import real_similarity
from kinfold.core.proxies import initial_proxies
from kinfold.core.reduce import normalise
from kinfold.errors import ConfigError
from kinfold.objectives.base import Host, Objective, ProxyObjective
from kinfold.objectives.host import at_rest, has_proxies, host_describes, host_terms, known_size
from kinfold.objectives.novel_health import VECTORS_LOOKED_AT, proxy_numbers, some_classes, variance_ratio
from kinfold.objectives.novel_vectors import Generated, NovelVectors
from kinfold.records import Embedded, Losses, ParamGroup, TrainSet

LEARNS = {
    ("pretraining", "generator"): {"generator", "novel_proxies"},
    ("pretraining", "embedder"): {"model", "base"},
    ("joint", "generator"): {"generator"},
    ("joint", "embedder"): {"model", "base", "novel_proxies"},
}
"""Stage and phase → what receives a gradient; everything else is detached. `base` holds the real classes' proxies."""

LISTED = 1000
"""Novel classes up to which the log has the nearest real class of each, once an epoch."""


class NovelClasses(Objective):
    """L2A-NC (Lee et al. 2021): any proxy or pair loss, on real embeddings and on generated ones of novel classes.

        generator's phase   J_gen = J_met + λ J_div,   J_met = loss({x~}, {y~}; [P; P~]),   J_div = divergence({x~}, {x})
        embedder's phase    loss(x, y; P) while pretraining,   loss({x} ∪ {x~}, {y} ∪ {y~}; [P; P~]) in the joint stage
        x~ = g(z, y~),   z ~ N(0, I)

    Two stages: while pretraining, the model learns from real images alone, as if there were no novel class, and the generator
    follows it; then both train together. What receives a gradient is the table `LEARNS`: the generator never moves the model, nor
    the model the generator. Over a pair loss there are no proxies at all: real vectors are further negatives of generated
    ones, each novel class of a batch has several vectors, and `loss` is the pair loss of the union.

    Paper → here: g → generator, C~ / C → novel_ratio, y~ → novel label, P → the base's proxies, P~ → novel_proxies, J_met and
    J_div → the terms `metric` and `divergence`, λ → divergence_weight. The paper's text gives the stages, C~ = 2 C, 16 numbers of noise
    and AdamW at 1e-4; formulas were lost. Reconstructed: the divergence and its weight, the number of vectors a batch, stage
    lengths, who trains P~ when, hidden width. Nothing of it is used once the model is trained.

    Args:
        base: the host: a proxy objective such as `Proxies(proxy_anchor, n_classes, dim)` or `HierarchicalProxies(…)`, or a pair
            objective such as `Pairwise(multi_similarity)`.
        pretraining_epochs: epochs before the joint stage; 0: joint from the start.
        n_classes: number of training classes; `None`: the base's. Pair objectives do not know it.
        dim: size of the embedding; `None`: the base's.
        novel_ratio: novel classes for each real one. 0 is the base, bit for bit.
        max_novel: at most so many, whatever the ratio: at 200 % of 11,318 classes tables and proxies hold 29 million numbers.
        existing: generate the real classes instead of novel ones (L2A-EC, the paper's control); no P~ then.
        generated_ratio: generated vectors for each image of a batch.
        divergence: a function of `kinfold.core.divergence`, keywords bound by `functools.partial`.
        divergence_weight: λ, 0 or more.
        noise_dim: size of z.
        hidden_dim: width of the generator.
        learning_rate: the generator's own, whatever the model's; AdamW.
        seed: of the generator's start, noise, labels and novel proxies.

    Raises:
        ConfigError: a host that is neither, an unknown number of classes or dimensions, a number out of range.

    Example:
        >>> from kinfold.losses import proxy_anchor
        >>> from kinfold.objectives.proxy import Proxies
        >>> objective = NovelClasses(Proxies(proxy_anchor, 100, 64), pretraining_epochs=10)
        >>> objective.n_novel, objective.novel_proxies.shape
        (200, torch.Size([200, 64]))

    Reference:
        Lee, Kim, Hong, Kwak, Learning to Generate Novel Classes for Deep Metric Learning, BMVC 2021.
    """

    stages = ("pretraining", "joint")
    joint: Tensor
    base: Any
    generator: NovelVectors | None
    novel_proxies: nn.Parameter | None

    def __init__(  # noqa: PLR0913 (each is a choice of the method)
        self,
        base: Host,
        *,
        pretraining_epochs: int,
        n_classes: int | None = None,
        dim: int | None = None,
        novel_ratio: float = 2.0,
        max_novel: int | None = None,
        existing: bool = False,
        generated_ratio: float = 1.0,
        divergence: Divergence = gauss_kl,
        divergence_weight: float = 1.0,
        noise_dim: int = 16,
        hidden_dim: int = 128,
        learning_rate: float = 1e-4,
        seed: int = 0,
    ):
        super().__init__()
        self.n_classes, self.dim = known_size("n_classes", base, n_classes), known_size("dim", base, dim)
        _check(pretraining_epochs=pretraining_epochs, novel_ratio=novel_ratio, divergence_weight=divergence_weight)
        if not generated_ratio > 0 or not learning_rate > 0:
            raise ConfigError(f"generated_ratio = {generated_ratio} and learning_rate = {learning_rate}: both must be above 0.")
        self.base, self.existing, self.divergence = base, existing, divergence
        self.has_proxies = has_proxies(base)
        self.pretraining_epochs, self.novel_ratio, self.max_novel = pretraining_epochs, novel_ratio, max_novel
        self.divergence_weight, self.generated_ratio, self.learning_rate = divergence_weight, generated_ratio, learning_rate
        self.seed = seed
        self.n_novel = _n_novel(self.n_classes, 1.0 if existing else novel_ratio, None if existing else max_novel)
        self.phases = ("generator", "embedder") if self.n_novel else ("embedder",)
        place = {"first_label": 0 if existing else self.n_classes, "ratio": generated_ratio}
        sizes = {"noise_dim": noise_dim, "hidden_dim": hidden_dim, "seed": seed}
        made = partial(NovelVectors, self.n_novel, self.dim, in_groups=not self.has_proxies, **place, **sizes)
        self.generator = made() if self.n_novel else None
        with_proxies = self.has_proxies and self.n_novel and not existing
        self.novel_proxies = _novel_proxies(self.n_classes, self.n_novel, self.dim, seed) if with_proxies else None
        self._divergence_draws = "generator" in inspect.signature(divergence).parameters
        self.register_buffer("joint", torch.tensor(pretraining_epochs == 0))
        self._is_joint = pretraining_epochs == 0  # the buffer's value without waiting for a GPU
        self.register_load_state_dict_post_hook(_restore_stage)

    @property
    def stage(self) -> Literal["pretraining", "joint"]:
        """`pretraining`, then `joint`."""
        return "joint" if self._is_joint else "pretraining"

    def forward(self, batch: Embedded, phase: str = "embedder") -> Losses:
        """Return `metric` and `divergence` in the generator's phase, the base's terms in the embedder's."""
        if phase == "generator":
            return self._generator_terms(batch)
        if not self._is_joint or self.generator is None:
            return host_terms(self.base, batch.embedding, batch.label, batch.item)
        with torch.no_grad():
            made = self.generator(batch)
        return self._joined(batch.embedding, batch, made, "embedder")

    def on_epoch_start(self, epoch: int, train_set: TrainSet) -> None:
        """Enter the joint stage when its epoch has come."""
        if epoch >= self.pretraining_epochs and not self._is_joint:
            self.joint.fill_(True)
            self._is_joint = True
        if isinstance(self.base, Objective):
            self.base.on_epoch_start(epoch, train_set)

    def on_step_end(self, step: int) -> None:
        """Let the base tidy up."""
        if isinstance(self.base, Objective):
            self.base.on_step_end(step)

    def parameter_groups(self) -> list[ParamGroup]:
        """Return the base's groups, `generator` with an AdamW of its own, and `novel_proxies`, which learn as fast as the base's."""
        groups = list(self.base.parameter_groups())
        like = next((group for group in groups if group.name == "proxies"), ParamGroup("proxies", []))
        if self.generator is not None:
            own = {"kind": "adamw", "learning_rate": self.learning_rate, "weight_decay": 1e-4, "eps": 1e-8}
            groups.append(ParamGroup("generator", list(self.generator.parameters()), **own))
        if self.novel_proxies is not None:
            how = {"lr_scale": like.lr_scale, "weight_decay": like.weight_decay}
            groups.append(ParamGroup("novel_proxies", [self.novel_proxies], **how))
        return groups

    def describe(self) -> dict[str, Any]:
        """Return what tells this objective from another one, the base's settings included."""
        return {**super().describe(), "base": host_describes(self.base)}

    @torch.no_grad()
    def health(self, batch: Embedded) -> dict[str, float]:
        """Return the base's numbers, and some of the generated classes: see `kinfold.core.novelty`.

        `novel_own_similarity`, `novel_own_similarity_min`: generated vectors to the proxy of their class; `novel_real_similarity`,
        `novel_real_similarity_max`: novel proxies to real ones; `generated_variance`: variance within generated classes as a
        multiple of that within the batch's classes.
        """
        found = self.base.health(batch)
        if self.generator is None:
            return found
        code = some_classes(self.n_novel).to(batch.label.device)
        made, label = self.generator.looked_at(code, VECTORS_LOOKED_AT)
        found["generated_variance"] = variance_ratio(made, label, batch)
        if self.has_proxies:
            real = self.base.class_proxies()
            own, other = (real[code], None) if self.novel_proxies is None else (self.novel_proxies[code], real)
            row = torch.arange(len(code), device=code.device).repeat_interleave(VECTORS_LOOKED_AT)
            found |= proxy_numbers(made, row, own, other, similarity=self.base.similarity)
        return found

    def snapshot(self) -> dict[str, Any]:
        """Return the base's snapshot and `nearest_real`, the real class nearest to each novel one, of up to 1,000."""
        found = self.base.snapshot() if isinstance(self.base, Objective) else {}
        if self.novel_proxies is None or self.n_novel > LISTED:
            return found
        base = cast(ProxyObjective, self.base)
        near = real_similarity(self.novel_proxies, base.class_proxies(), similarity=base.similarity)
        return {**found, "nearest_real": near.nearest.tolist()}

    def _generator_terms(self, batch: Embedded) -> Losses:
        assert self.generator is not None
        made, real = self.generator(batch), batch.embedding.detach()
        with at_rest(self.base):
            metric = self._joined(None if self.has_proxies else real, batch, made, "generator").total
        sides = (normalise(made.embedding), made.code, normalise(real), batch.label)
        source = {"generator": torch.Generator().manual_seed(self.generator.draws.n)} if self._divergence_draws else {}
        return Losses({"metric": metric, "divergence": self.divergence_weight * self.divergence(*sides, **source)})

    def _joined(self, real: Tensor | None, batch: Embedded, made: Generated, phase: str) -> Losses:
        """Return the base's loss of generated vectors, together with real ones if there are any."""
        parts = [(made.embedding, made.label, made.item)]
        if real is not None:
            parts.insert(0, (real, batch.label, batch.item))
        embedding, label, item = (torch.cat(each) for each in zip(*parts, strict=True))
        novel = self.novel_proxies
        if novel is not None and "novel_proxies" not in LEARNS[self.stage, phase]:
            novel = novel.detach()
        return host_terms(self.base, embedding, label, item, novel)


def _restore_stage(objective: NovelClasses, incompatible: Any) -> None:
    del incompatible
    objective._is_joint = bool(objective.joint)


def _novel_proxies(n_classes: int, n_novel: int, dim: int, seed: int) -> nn.Parameter:
    """Return proxies that start like the real ones, and as long, from a draw of their own."""
    start = initial_proxies(n_novel, dim, generator=torch.Generator().manual_seed(seed + 1))
    return nn.Parameter(start * (n_novel / n_classes) ** 0.5)


def _n_novel(n_classes: int, ratio: float, most: int | None) -> int:
    if most is not None and most < 1:
        raise ConfigError(f"max_novel = {most}: at least 1, or none for no limit.")
    wanted = round(ratio * n_classes)
    return wanted if most is None else min(wanted, most)


def _check(**values: float) -> None:
    for name, value in values.items():
        if not 0 <= value < float("inf"):
            raise ConfigError(f"`{name}` = {value}: it must be 0 or more.")
