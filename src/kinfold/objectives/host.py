"""What a method asks of the objective that it builds on, whether that has proxies or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from kinfold.errors import ConfigError
from kinfold.objectives.base import Host
from kinfold.records import Losses


def has_proxies(base: Host) -> bool:
    """Return whether a host compares with proxies; otherwise it compares images with each other."""
    return hasattr(base, "class_proxies")


def host_terms(
    base: Any,
    embedding: Float[Tensor, "n d"],
    label: Int[Tensor, " n"],
    item: Int[Tensor, " n"],
    extra_proxies: Float[Tensor, "e d"] | None = None,
) -> Losses:
    """Return a host's loss of any embeddings: against its proxies and further ones, or against each other."""
    if has_proxies(base):
        return base.terms(embedding, label, extra_proxies=extra_proxies)
    return base.terms(embedding, label, item)


def host_describes(base: Any) -> dict[str, Any]:
    """Return what a host says of itself; nothing where it does not say anything."""
    return getattr(base, "describe", dict)()


def known_size(name: str, base: Host, given: int | None) -> int:
    """Return the host's `n_classes` or `dim`, or the one that was given.

    Raises:
        ConfigError: neither is known, or they differ.
    """
    own = getattr(base, name, None)
    if own is None and given is None:
        raise ConfigError(f"`{name}` is not known to {type(base).__name__}: give it as a keyword, {name}=….")
    if own is not None and given is not None and own != given:
        raise ConfigError(f"`{name}` = {given}, but {type(base).__name__} was made for {own}: leave it out.")
    return int(own if given is None and own is not None else given or 0)


@contextmanager
def at_rest(module: nn.Module) -> Iterator[None]:
    """Let no gradient reach a module's parameters from what is computed meanwhile."""
    learning = [p for p in module.parameters() if p.requires_grad]
    for p in learning:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in learning:
            p.requires_grad_(True)
