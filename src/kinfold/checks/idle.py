"""Settings that somebody wrote down and that do nothing."""

from collections.abc import Mapping

from kinfold.checks.finding import Finding
from kinfold.settings import Settings


def idle(settings: Settings, table: str, reasons: Mapping[str, str]) -> list[Finding]:
    """Return a warning for each of these settings that was written down, whether or not with its default value.

    A value that switches something off (0, false, nothing) contradicts nothing, and is passed over.

    Args:
        settings: the group of settings; what was written is what pydantic remembers (`model_fields_set`).
        table: the group's name in a configuration, such as `batches`; empty for the outermost.
        reasons: name of a setting that does nothing → why.

    Example:
        >>> from kinfold.recipe import BatchSettings
        >>> found = idle(BatchSettings(sampler="random", images_per_class=8), "batches", {"images_per_class": "classes are drawn as they come"})
        >>> found[0].message
        '`batches.images_per_class` = 8 does nothing: classes are drawn as they come'
    """
    prefix = f"{table}." if table else ""
    return [
        Finding("idle_setting", "warning", f"`{prefix}{name}` = {shown(getattr(settings, name))} does nothing: {reason}", REMEDY)
        for name, reason in reasons.items()
        if name in settings.model_fields_set and getattr(settings, name)
    ]


REMEDY = "remove it, or change what it depends on"


def shown(value: object) -> str:
    """Return a value as a configuration file has it.

    Example:
        >>> shown((0.4, 1.0)), shown(True), shown(None), shown("adamw")
        ('[0.4, 1]', 'true', 'none', "'adamw'")
    """
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return f"[{', '.join(shown(each) for each in value)}]" if isinstance(value, tuple | list) else repr(value)
