"""Embedding Expansion: points between images of a class, before any pair loss."""

from typing import Any, Literal

from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.expansion import expanded_similarities
from kinfold.core.pairs import pairs_from_labels, without_same_item
from kinfold.errors import ConfigError
from kinfold.objectives.base import Objective, PairObjective
from kinfold.objectives.host import has_proxies, host_describes
from kinfold.records import Embedded, Losses, Pairs, ParamGroup, Similarity


class EmbeddingExpansion(Objective):
    """Embedding Expansion (Ko, Gu 2020): the host's pair loss, its negatives the hardest among images and points between them.

    See `kinfold.core.expansion.expanded_similarities`. Positives stay what they are; mining, if the host has any, sees the hardened
    negatives. It learns nothing of its own.

    Args:
        base: a pair objective, such as `Pairwise(triplet)`.
        n_points: points between an image and the next of its class; the paper takes 2.
        per: `class`: the hardest pair of two classes (the paper). `image`: the hardest copy of two images (the released code).

    Raises:
        ConfigError: a host with proxies, fewer points than 0, an unknown `per`.

    Example:
        >>> from kinfold.losses import multi_similarity
        >>> from kinfold.objectives.pairwise import Pairwise
        >>> objective = EmbeddingExpansion(Pairwise(multi_similarity))

    Reference:
        Ko, Gu, Embedding Expansion: Augmentation in Embedding Space for Deep Metric Learning, CVPR 2020.
    """

    base: Any

    def __init__(self, base: PairObjective, *, n_points: int = 2, per: Literal["class", "image"] = "class"):
        super().__init__()
        if has_proxies(base):
            raise ConfigError(
                f"{type(base).__name__} compares with proxies; Embedding Expansion goes over pairs: take Pairwise(…)."
            )
        if n_points < 0 or per not in ("class", "image"):
            raise ConfigError(f"n_points = {n_points} and per = {per!r}: 0 or more points, per class or image.")
        self.base, self.n_points, self.per = base, n_points, per

    @property
    def similarity(self) -> Similarity:
        """The base's."""
        return self.base.similarity

    def forward(self, batch: Embedded, phase: str = "main") -> Losses:
        """Return the base's terms."""
        del phase  # there is one
        return self.terms(batch.embedding, batch.label, batch.item)

    def terms(self, embedding: Float[Tensor, "n d"], label: Int[Tensor, " n"], item: Int[Tensor, " n"]) -> Losses:
        """Return the base's terms of any embeddings, their negatives hardened."""
        pairs = without_same_item(pairs_from_labels(label, label), item, item)
        how: dict[str, Any] = {"similarity": self.similarity, "n_points": self.n_points, "per": self.per}
        return self.on_pairs(expanded_similarities(embedding, label, item, pairs, **how), pairs)

    def on_pairs(self, sim: Float[Tensor, "n m"], pairs: Pairs) -> Losses:
        """Return the base's terms of similarities as they are."""
        return self.base.on_pairs(sim, pairs)

    def parameter_groups(self) -> list[ParamGroup]:
        """Return the base's groups."""
        return self.base.parameter_groups()

    def describe(self) -> dict[str, Any]:
        """Return what tells this objective from another one, the base's settings included."""
        return {**super().describe(), "base": host_describes(self.base)}

    def health(self, batch: Embedded) -> dict[str, float]:
        """Return the base's numbers, of pairs as they are without points."""
        return self.base.health(batch)
