"""Proxy Synthesis: classes mixed from two of the batch, before any proxy loss, or any pair loss."""

from typing import Any, cast

import torch
from torch import Tensor

from kinfold.core.synthesis import mixed_classes, mixed_with_proxies
from kinfold.errors import ConfigError
from kinfold.objectives.base import Host, Objective
from kinfold.objectives.draws import Draws
from kinfold.objectives.host import has_proxies, host_describes, host_terms
from kinfold.objectives.novel_health import proxy_numbers
from kinfold.records import Embedded, Losses, ParamGroup, Similarity, TrainSet

SHARES_LOOKED_AT = 8
"""Shares λ that the log's numbers are averaged over."""


class ProxySynthesis(Objective):
    """Proxy Synthesis (Gu, Ko, Kim 2021): the host's loss on the batch and on classes mixed from pairs of it.

        loss({x} ∪ {x~}, {y} ∪ {C + k}; [P; P~]),   x~_k = normalise(λ x_i + (1 − λ) x_j),   p~_k alike,   λ ~ Beta(a, a) once a batch

    Each synthetic class has one vector and one proxy; gradients reach both parents of both. It learns nothing of its own. Over a pair loss there
    are no proxies, and classes are mixed with classes (`kinfold.core.synthesis.mixed_classes`, which is ours).

    Paper → here: μ → ratio, α → concentration.

    Args:
        base: the host: an objective with proxies, or on pairs.
        ratio: synthetic classes (over pairs: vectors) for each image of a batch; 0 is the base, bit for bit.
        concentration: a of Beta(a, a); small: nearly one of the parents.
        seed: of λ.

    Raises:
        ConfigError: a ratio below 0, a concentration not above 0.

    Example:
        >>> from kinfold.losses import proxy_nca
        >>> from kinfold.objectives.proxy import Proxies
        >>> objective = ProxySynthesis(Proxies(proxy_nca, 100, 64))

    Reference:
        Gu, Ko, Kim, Proxy Synthesis: Learning with Synthetic Classes for Deep Metric Learning, AAAI 2021.
    """

    base: Any

    def __init__(self, base: Host, *, ratio: float = 1.0, concentration: float = 0.4, seed: int = 0):
        super().__init__()
        if not 0 <= ratio < float("inf") or not 0 < concentration < float("inf"):
            raise ConfigError(f"ratio = {ratio} and concentration = {concentration}: at least 0, and above 0.")
        self.n_classes, self.dim = getattr(base, "n_classes", None), getattr(base, "dim", None)
        self.base, self.ratio, self.concentration, self.seed = base, ratio, concentration, seed
        self.draws = Draws(seed)

    @property
    def similarity(self) -> Similarity:
        """The base's."""
        return self.base.similarity

    def forward(self, batch: Embedded, phase: str = "main") -> Losses:
        """Return the base's terms, synthetic classes included."""
        del phase  # there is one
        return self.terms(batch.embedding, batch.label, batch.item)

    def terms(self, embedding: Tensor, label: Tensor, item: Tensor) -> Losses:
        """Return the base's terms of any embeddings, and of classes mixed from them."""
        n = round(self.ratio * len(label))
        if not n:
            return host_terms(self.base, embedding, label, item)
        share = float(self.draws.next()[0].beta(self.concentration, self.concentration))
        mixed, code, proxies = self._mixed(embedding, label, share, n)
        first = cast(int, self.n_classes) if proxies is not None else int(label.max()) + 1
        labels, items = torch.cat([label, code + first]), torch.cat([item, -1 - torch.arange(len(code), device=item.device)])
        return host_terms(self.base, torch.cat([embedding, mixed]), labels, items, proxies)

    def on_epoch_start(self, epoch: int, train_set: TrainSet) -> None:
        """Let the base recompute what it does."""
        if isinstance(self.base, Objective):
            self.base.on_epoch_start(epoch, train_set)

    def on_step_end(self, step: int) -> None:
        """Let the base tidy up."""
        if isinstance(self.base, Objective):
            self.base.on_step_end(step)

    def parameter_groups(self) -> list[ParamGroup]:
        """Return the base's groups."""
        return self.base.parameter_groups()

    def describe(self) -> dict[str, Any]:
        """Return what tells this objective from another one, the base's settings included."""
        return {**super().describe(), "base": host_describes(self.base)}

    def snapshot(self) -> dict[str, Any]:
        """Return the base's."""
        return self.base.snapshot() if isinstance(self.base, Objective) else {}

    @torch.no_grad()
    def health(self, batch: Embedded) -> dict[str, float]:
        """Return the base's numbers and, over proxies, those of synthetic classes, as `NovelClasses.health` has them."""
        found = self.base.health(batch)
        if not has_proxies(self.base) or not self.ratio:
            return found
        shares = self.draws.fixed()[0].beta(self.concentration, self.concentration, SHARES_LOOKED_AT).tolist()
        rows = [row for share in shares if (row := self._numbers(batch, share))]
        return {**found, **{name: sum(row[name] for row in rows) / len(rows) for name in (rows[0] if rows else ())}}

    def _numbers(self, batch: Embedded, share: float) -> dict[str, float]:
        mixed, code, proxies = self._mixed(batch.embedding, batch.label, share, len(batch.label))
        if proxies is None or not len(mixed):
            return {}
        numbers = proxy_numbers(mixed, code, proxies, self.base.class_proxies(), similarity=self.similarity)
        smallest = float(self.similarity(mixed, proxies).diagonal().min())  # a class has one vector: the least of all, then
        return {**numbers, "novel_own_similarity_min": smallest}

    def _mixed(self, embedding: Tensor, label: Tensor, share: float, n: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return mixed vectors, their classes from 0, and their proxies where there are any."""
        if not has_proxies(self.base):
            mixed, code = mixed_classes(embedding, label, share=share, n=n)
            return mixed, code, None
        mixed, proxies = mixed_with_proxies(embedding, label, self.base.class_proxies(), share=share, n=n)
        return mixed, torch.arange(len(mixed), device=label.device), proxies
