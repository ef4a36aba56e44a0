"""How findings list names and count things."""

import unicodedata
from collections.abc import Sequence

SHOWN = 5


def listed(values: Sequence[object], limit: int = SHOWN) -> str:
    r"""Return the first values in the form in which Python writes them, so that invisible characters show, and how many more.

    Example:
        >>> listed(["wren", "wren\u00a0", 3], limit=2)
        "'wren', 'wren\\xa0' and 1 more"
    """
    rest = f" and {len(values) - limit:,} more" if len(values) > limit else ""
    return ", ".join(shown(value) for value in values[:limit]) + rest


def shown(value: object) -> str:
    r"""Return `repr` of a value, or its ASCII form if it holds letters that `repr` shows but the eye cannot tell apart.

    Example:
        >>> shown("Möwe"), shown("Mo\u0308we"), shown("a\u200bb")
        ("'Möwe'", "'Mo\\u0308we'", "'a\\u200bb'")
    """
    text = str(value)
    is_plain = unicodedata.normalize("NFKC", text) == text
    return repr(value) if is_plain else ascii(value)


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun.

    Example:
        >>> counted(1, "image"), counted(1200, "image"), counted(2, "class", "classes")
        ('1 image', '1,200 images', '2 classes')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"
