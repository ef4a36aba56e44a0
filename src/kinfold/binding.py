"""Names become functions with their options bound, or an error with the nearest name."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kinfold.errors import ConfigError, did_you_mean


def choose(name: str, table: Mapping[str, Any], key: str) -> Any:
    """Return the table's entry, or an error with the nearest name."""
    if name not in table:
        raise ConfigError(f"`{key}` = {name!r} is not known: {did_you_mean(name, table)}")
    return table[name]


def bind(function: Callable[..., Any], options: Mapping[str, Any], key: str) -> Callable[..., Any]:
    """Bind keyword options to a function after checking that it has them.

    Example:
        >>> def loss(sim, pairs, *, scale=32.0): ...
        >>> bind(loss, {"scal": 2}, "objective.loss_options")
        Traceback (most recent call last):
        kinfold.errors.ConfigError: `objective.loss_options.scal` is not known: did you mean `scale`? Known: scale.
    """
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY and p.name != "generator"]
    for name, value in options.items():
        if name not in known:
            raise ConfigError(f"`{key}.{name}` is not known: {did_you_mean(name, known)}")
        default = inspect.signature(function).parameters[name].default
        if not _is_like(value, default):
            raise ConfigError(f"`{key}.{name}` = {value!r} cannot be used: it must be {_kind(default)}, such as {default!r}.")
    return partial(function, **options) if options else function


def _is_like(value: Any, default: Any) -> bool:
    if default is inspect.Parameter.empty or default is None:
        return True
    if isinstance(default, bool | str):
        return type(value) is type(default)
    if isinstance(default, int | float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return not callable(default)


def _kind(default: Any) -> str:
    if callable(default):
        return "given as `objective.pick`"
    return {bool: "true or false", str: "text"}.get(type(default), "a number")
