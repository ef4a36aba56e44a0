"""Memory budgets: "512MB", "2GB" or a number of bytes."""

import re

from kinfold.errors import ConfigError

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
SMALLEST = 10**6


def bytes_of(memory: str | int) -> int:
    """Return a memory budget in bytes; KB, MB, GB are powers of 1000, KiB, MiB, GiB powers of 1024.

    Raises:
        ConfigError: the budget cannot be read or is below one megabyte.

    Example:
        >>> bytes_of("512MB"), bytes_of("1.5 GiB"), bytes_of(2_000_000)
        (512000000, 1610612736, 2000000)
    """
    size = _read(memory) if isinstance(memory, str) else memory
    if isinstance(size, bool) or size < SMALLEST:
        raise ConfigError(
            f"memory is {memory!r}, below the smallest budget of 1MB: write one such as '512MB', '2GB' or 512_000_000."
        )
    return size


def _read(memory: str) -> int:
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Za-z]*)\s*", memory)
    unit = (match[2].upper() or "B") if match else ""
    if match is None or unit not in UNITS:
        raise ConfigError(
            f"memory is {memory!r}, which is no size: write a number and one of B, KB, MB, GB, KiB, MiB, GiB, such as '512MB'."
        )
    return int(float(match[1]) * UNITS[unit])
