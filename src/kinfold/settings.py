"""The base of everything that can be configured: strict, frozen, with errors that name the nearest key."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from kinfold.errors import ConfigError, did_you_mean


class Settings(BaseModel):
    """A group of settings; unknown keys and values out of range raise `ConfigError`.

    Example:
        >>> class Example(Settings):
        ...     learning_rate: float = 1e-3
        >>> Example(learning_rat=1)
        Traceback (most recent call last):
        kinfold.errors.ConfigError: `learning_rat` is not known: did you mean `learning_rate`? Known: learning_rate.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, protected_namespaces=())

    def __init__(self, /, **values: Any):
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(explain(error, type(self))) from None


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Put a validation error into one line per fault: the key, the value, what is allowed."""
    text = "\n".join(_explain_one(fault, model) for fault in error.errors(include_url=False))
    return text.replace("`optimizer.groups.", "`optimizer.")  # as it is typed in a file


def _explain_one(fault: Any, model: type[BaseModel]) -> str:
    path = [str(part) for part in fault["loc"]]
    key = ".".join(path)
    if fault["type"] == "extra_forbidden":
        return f"`{key}` is not known: {did_you_mean(path[-1], _fields_at(model, path[:-1]))}"
    if fault["type"] == "missing":
        return f"`{key}` is missing: give it a value."
    cause = fault.get("ctx", {}).get("error")
    if isinstance(cause, ConfigError):
        return _with_prefix(str(cause), key)
    reason = fault["msg"].removeprefix("Value error, ")
    where = f"`{key}`: " if key else ""
    return f"{where}{reason} (got {fault['input']!r})"


def _with_prefix(message: str, key: str) -> str:
    """Put the outer key before the inner one that the message opens with."""
    return message.replace("`", f"`{key}.", 1) if key and message.startswith("`") else message


def _fields_at(model: type[BaseModel], path: list[str]) -> list[str]:
    """Return the known keys of the sub-model that `path` leads to (the model's own where the path leaves the models)."""
    for part in path:
        field = model.model_fields.get(part)
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break
        model = inner
    return list(model.model_fields)
