"""The errors of the library: each says what is wrong, the values, and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class KinfoldError(Exception):
    """Base of everything that the library raises on purpose."""


class ShapeError(KinfoldError, ValueError):
    """Two things that must fit each other do not: sizes, lengths, dimensions."""


class ConfigError(KinfoldError, ValueError):
    """A setting is unknown, out of range, or contradicts another."""


class DataError(KinfoldError, ValueError):
    """A file, an image, a table or an array cannot be used as it is."""


class TrainingError(KinfoldError, RuntimeError):
    """Training cannot go on: a loss is not finite, or a checkpoint does not fit."""


class Interrupted(KinfoldError):  # noqa: N818 (nothing went wrong)
    """Training was asked to stop; the message says where it stands and how to go on."""


class MissingExtraError(KinfoldError, ImportError):
    """An optional package is needed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str):
        super().__init__(f"{purpose} needs the package `{package}`: pip install 'kinfold[{extra}]'")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for a misspelt name: the nearest known one, then all of them.

    Example:
        >>> did_you_mean("proxy_ancor", ["proxy_anchor", "proxy_nca"])
        'did you mean `proxy_anchor`? Known: proxy_anchor, proxy_nca.'
    """
    names = sorted(known)
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean `{nearest[0]}`? " if nearest else ""
    return f"{hint}Known: {', '.join(names)}."
