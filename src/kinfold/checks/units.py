"""Times and sizes as people say them."""

SIZES = ("B", "kB", "MB", "GB", "TB")


def as_time(seconds: float) -> str:
    """Return a time in the two units that matter.

    Example:
        >>> as_time(0.034), as_time(7.26), as_time(95), as_time(7260), as_time(200_000)
        ('34 ms', '7.3 s', '1 min 35 s', '2 h 1 min', '2 d 8 h')
    """
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    if round(seconds) < 3600:
        return _in_two(round(seconds), "min", "s", 60)
    if round(seconds / 60) < 24 * 60:
        return _in_two(round(seconds / 60), "h", "min", 60)
    return _in_two(round(seconds / 3600), "d", "h", 24)


def as_size(n_bytes: float) -> str:
    """Return a size in powers of 1000.

    Example:
        >>> as_size(80), as_size(1_300_000), as_size(45_600_000_000)
        ('80 B', '1.3 MB', '46 GB')
    """
    size, unit = float(n_bytes), SIZES[0]
    for unit in SIZES:
        if size < 999.5 or unit == SIZES[-1]:
            break
        size /= 1000
    return f"{size:.0f} {unit}" if size >= 9.95 or unit == "B" else f"{size:.1f} {unit}"


def _in_two(count: int, large: str, small: str, n_small: int) -> str:
    whole, rest = divmod(count, n_small)
    return f"{whole} {large} {rest} {small}" if rest else f"{whole} {large}"
