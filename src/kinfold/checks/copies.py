"""Whether two pictures are copies of one: the same photograph re-encoded, resized or slightly brightened, not merely alike."""

from collections.abc import Iterable

import numpy as np

from kinfold.checks.images import Pictures
from kinfold.checks.perceptual_hash import GREY, alike, hashes

# After the best change of brightness and contrast, what is left must be no more than re-encoding and resizing leave: a share of
# the picture's own contrast, and a noise in grey levels that only counts where that contrast is low. Set on photographs of birds,
# cars and grocery shelves and on line drawings: halving and JPEG quality 30 together nearly always pass, two shots of one shelf
# never do.
COARSE = (0.12, 1.5, 0.20)
"""Largest remainder of the thumbnail, root mean square: share of its contrast, noise, and a share that noise may not exceed."""
FINE = (0.14, 2.1, 0.33)
"""The same for its fine detail, which moves when the camera or the object does."""
LARGEST = 0.9
"""Largest remainder at any point, as a share of the contrast: another word on the same form is no copy."""
COLOUR, TINT = 16.0, 16.0
"""Largest difference of colour, in levels: root mean square, and of the whole picture's mean."""
GAIN = 1.35
"""Largest change of contrast."""
ASPECT = 0.02
"""Largest change of width : height, besides the rounding to whole pixels."""
PAIRS_AT_ONCE = 2048


def copies(pictures: Pictures, rows: np.ndarray, *, mirrored: bool = False) -> np.ndarray:
    """Return the pairs of rows that are copies of one picture.

    Hashes of all pairs are compared first, and the thumbnails of those that are alike then.

    Args:
        pictures: what was seen of every picture.
        rows: those that are compared, distinct pictures, ascending, (n,) int64.
        mirrored: look for pictures whose mirror image is a copy instead.

    Returns:
        (k, 2) int64, the lower row first.
    """
    flip = slice(None, None, -1 if mirrored else 1)
    one = hashes(pictures.thumbnail)[rows]
    other = hashes(pictures.thumbnail[:, :, flip])[rows] if mirrored else one
    found = [np.empty((0, 2), dtype=np.int64)]
    for block in alike(one, other):
        for pairs in np.array_split(rows[block], max(1, len(block) // PAIRS_AT_ONCE)):
            first, second = pairs.T
            is_copy = _same_shape(pictures.size[first], pictures.size[second])
            is_copy &= are_copies(pictures.thumbnail[first], pictures.thumbnail[second][:, :, flip])
            found.append(pairs[is_copy])
    return np.concatenate(found)


def are_copies(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return for each pair of thumbnails whether they show copies of one picture.

    With g the grey levels less their mean, and r = g' - a g for the least-squares gain a, the root mean square of r must be at most
    min(√((p s)² + b²), q s) for the contrast s of g' — both for the picture and for its fine detail (less the mean of 3 × 3).

    Args:
        one: (k, 32, 32, 3) uint8.
        other: (k, 32, 32, 3) uint8.

    Returns:
        (k,) bool.
    """
    one, other = one.astype(np.float32), other.astype(np.float32)
    grey, other_grey = one @ GREY, other @ GREY
    coarse, coarse_contrast, gain = _remainder(_centred(grey), _centred(other_grey))
    fine, fine_contrast, _ = _remainder(_detail(grey), _detail(other_grey))
    colour = (other - other_grey[..., None]) - (one - grey[..., None]) * gain[:, None, None, None]
    tint = np.abs((other - other_grey[..., None]).mean((1, 2)) - (one - grey[..., None]).mean((1, 2))).max(axis=1)
    return (
        _is_small(_rms(coarse), coarse_contrast, COARSE)
        & _is_small(_rms(fine), fine_contrast, FINE)
        & (np.abs(coarse).max(axis=(1, 2)) <= LARGEST * coarse_contrast)
        & (np.sqrt(((colour - colour.mean((1, 2), keepdims=True)) ** 2).mean((1, 2, 3))) <= COLOUR)
        & (tint <= TINT)
        & (gain >= 1 / GAIN)
        & (gain <= GAIN)
    )


def components(n: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return the groups of numbers below n that pairs join, directly or through others; each ascending, lone numbers left out.

    Example:
        >>> components(6, [(0, 2), (4, 2), (1, 5)])
        [[0, 2, 4], [1, 5]]
    """
    above = list(range(n))

    def root(number: int) -> int:
        while above[number] != number:
            above[number] = above[above[number]]  # halve the way for the next one who asks
            number = above[number]
        return number

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        above[high] = low
    groups: dict[int, list[int]] = {}
    for number in range(n):
        groups.setdefault(root(number), []).append(number)
    return [group for group in groups.values() if len(group) > 1]


def _same_shape(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    change = np.abs(np.log(one[:, 0] * other[:, 1]) - np.log(one[:, 1] * other[:, 0]))
    return change <= ASPECT + 1 / np.minimum(one.min(axis=1), other.min(axis=1))


def _remainder(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what of `other` is no multiple of `one`, the contrast of `other`, and the multiple, for each pair of (k, 32, 32)."""
    gain = (one * other).sum((1, 2)) / np.maximum((one * one).sum((1, 2)), 1e-6)
    return other - gain[:, None, None] * one, _rms(other), gain


def _is_small(remainder: np.ndarray, contrast: np.ndarray, bounds: tuple[float, float, float]) -> np.ndarray:
    share, noise, at_most = bounds
    return remainder <= np.minimum(np.hypot(share * contrast, noise), at_most * contrast)


def _rms(values: np.ndarray) -> np.ndarray:
    return np.sqrt((values * values).mean((1, 2)))


def _centred(grey: np.ndarray) -> np.ndarray:
    return grey - grey.mean((1, 2), keepdims=True)


def _detail(grey: np.ndarray) -> np.ndarray:
    side = grey.shape[1]
    wide = np.pad(grey, ((0, 0), (1, 1), (1, 1)), mode="edge")
    around = sum(wide[:, down : down + side, right : right + side] for down in range(3) for right in range(3))
    return grey - around / 9
