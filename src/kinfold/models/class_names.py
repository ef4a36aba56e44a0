"""Names of training classes as they are kept with a model: strings stay strings, whole numbers stay whole numbers."""

from collections import Counter
from collections.abc import Mapping

from kinfold.errors import DataError


def checked_class_names(classes: object) -> list[str] | list[int] | None:
    """Return class names as plain strings or plain whole numbers, which JSON keeps exactly.

    Raises:
        DataError: other types, both kinds at once, or a name that comes twice.

    Example:
        >>> checked_class_names(("robin", "wren"))
        ['robin', 'wren']
    """
    if classes is None:
        return None
    if isinstance(classes, str | bytes | Mapping) or not hasattr(classes, "__iter__"):
        raise DataError(f"`classes` is {classes!r}: it must be a list of class names.")
    plain = [name.item() if hasattr(name, "item") else name for name in classes]  # pyright: ignore[reportGeneralTypeIssues]
    if not (all(type(name) is str for name in plain) or all(type(name) is int for name in plain)):
        raise DataError(
            f"`classes` must be all strings or all whole numbers, not {sorted({type(name).__name__ for name in plain})}."
        )
    if len(set(plain)) != len(plain):
        raise DataError(f"`classes` names {Counter(plain).most_common(1)[0][0]!r} more than once.")
    return plain
