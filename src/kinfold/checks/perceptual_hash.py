"""A perceptual hash: 256 numbers that stay nearly the same when a picture is re-encoded, resized or brightened; and its neighbours."""

from collections.abc import Iterator

import numpy as np

GREY = np.array([0.299, 0.587, 0.114], dtype=np.float32)
HASH_SIDE = 16
ALIKE = 0.97
"""Correlation of two hashes from which on pictures are worth a closer look; copies lie above 0.98."""
LEAST_CONTRAST = 2.0
"""Standard deviation, of 255 grey levels, below which a picture shows nothing that could be recognised."""
BLOCK_BYTES = 64 * 2**20
ROWS_AT_ONCE = 4096


def hashes(thumbnails: np.ndarray) -> np.ndarray:
    """Return the hash of every thumbnail: its 16 × 16 grey means, less their mean, of length 1.

    hash = (g - mean(g)) / |g - mean(g)|, so that the product of two hashes is the correlation of two pictures, which no change of
    brightness or contrast moves.

    Args:
        thumbnails: (n, 32, 32, 3) uint8.

    Returns:
        (n, 256) float32; zeros for pictures almost without contrast, which are like nothing.

    Example:
        >>> picture = np.random.default_rng(0).integers(0, 200, (1, 32, 32, 3), dtype=np.uint8)
        >>> float((hashes(picture) @ hashes(picture + 50).T).round(3).item())
        1.0
    """
    found = np.empty((len(thumbnails), HASH_SIDE**2), dtype=np.float32)
    for start in range(0, len(thumbnails), ROWS_AT_ONCE):
        grey = thumbnails[start : start + ROWS_AT_ONCE] @ GREY
        cell = grey.shape[1] // HASH_SIDE
        means = grey.reshape(len(grey), HASH_SIDE, cell, HASH_SIDE, cell).mean(axis=(2, 4)).reshape(len(grey), -1)
        means -= means.mean(axis=1, keepdims=True)
        length = np.linalg.norm(means, axis=1, keepdims=True)
        shows = length >= LEAST_CONTRAST * HASH_SIDE  # length² is 256 times the variance
        found[start : start + len(grey)] = np.where(shows, means / np.maximum(length, 1e-6), 0)
    return found


def alike(one: np.ndarray, other: np.ndarray, *, bound: float = ALIKE) -> Iterator[np.ndarray]:
    """Yield the pairs i < j whose correlation `one[i] · other[j]` is at least the bound, some at a time.

    All pairs are compared exactly, as products of blocks that never take more than 64 MB.

    Args:
        one: hashes of the pictures, (n, 256).
        other: hashes of the same pictures, or of these pictures mirrored, in the same order.
        bound: least correlation.

    Yields:
        Pairs of rows, (k, 2) int64.

    Example:
        >>> spots = np.eye(3, dtype=np.float32)[[0, 1, 0]]
        >>> [pairs.tolist() for pairs in alike(spots, spots)]
        [[[0, 2]]]
    """
    n = len(one)
    step = max(1, BLOCK_BYTES // (4 * max(n, 1)))
    for start in range(0, n, step):
        product = one[start : start + step] @ other[start:].T
        first, second = np.nonzero(product >= bound)
        is_pair = first < second
        if is_pair.any():
            yield np.stack([first[is_pair], second[is_pair]], axis=1) + start
