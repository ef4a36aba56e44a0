"""The memory of a process that makes and frees the same large tensors again and again."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
FROM_HEAP = (2**30, 32 * 2**20)  # older versions of glibc refuse more than the second
KEPT = 2**30
GROWTH = 64 * 2**20


def keep_freed_memory() -> bool:
    """Let the C library keep up to 1 GiB of freed memory instead of giving it back and asking for it again, page by page.

    The feature maps of a batch are tens of megabytes; by default (glibc) each is mapped and unmapped anew, which takes about as long
    as half of the computing. To be called once, early, by a program; a library has no business to.

    Returns:
        Whether the C library has such settings; others are left as they are.

    Example:
        >>> keep_freed_memory() in (True, False)
        True
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    from_heap = any(mallopt(M_MMAP_THRESHOLD, size) for size in FROM_HEAP)
    return bool(from_heap and mallopt(M_TRIM_THRESHOLD, KEPT) and mallopt(M_TOP_PAD, GROWTH))
