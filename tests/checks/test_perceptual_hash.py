import numpy as np
import pytest
from PIL import Image

from kinfold.checks import perceptual_hash
from kinfold.checks.perceptual_hash import alike, hashes
from tests.checks.pictures import encoded, photo, resized, seen


def by_loops(thumbnail: np.ndarray) -> np.ndarray:
    means = np.zeros((16, 16))
    for row in range(32):
        for column in range(32):
            red, green, blue = thumbnail[row, column].astype(float)
            means[row // 2, column // 2] += (0.299 * red + 0.587 * green + 0.114 * blue) / 4
    means -= means.mean()
    return (means / np.sqrt((means**2).sum())).ravel()


def test_a_hash_is_what_its_formula_says():
    thumbnails = seen([photo(seed) for seed in range(3)]).thumbnail
    assert np.allclose(hashes(thumbnails), [by_loops(thumbnail) for thumbnail in thumbnails], atol=1e-5)


def test_blocks_of_rows_give_the_same_hashes(monkeypatch):
    thumbnails = seen([photo(seed) for seed in range(5)]).thumbnail
    whole = hashes(thumbnails)
    monkeypatch.setattr(perceptual_hash, "ROWS_AT_ONCE", 2)
    assert np.array_equal(whole, hashes(thumbnails))


def test_a_picture_almost_without_contrast_is_like_nothing():
    flat = np.full((1, 32, 32, 3), 80, dtype=np.uint8)
    flat[0, 0, :8] = 83
    assert not hashes(flat).any()


@pytest.mark.parametrize("n", [0, 1, 40])
@pytest.mark.parametrize("block_bytes", [1, 600, 2**20])
def test_all_pairs_are_found_once_whatever_the_block(monkeypatch, n, block_bytes):
    random = np.random.default_rng(n)
    x = random.normal(size=(n, 4)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.roll(x, 1, axis=1)
    monkeypatch.setattr(perceptual_hash, "BLOCK_BYTES", block_bytes)
    for other in (x, y):
        expected = [(i, j) for i in range(n) for j in range(i + 1, n) if x[i] @ other[j] >= 0.8]
        found = [tuple(pair) for pairs in alike(x, other, bound=0.8) for pair in pairs.tolist()]
        assert sorted(found) == expected
        assert n < 40 or expected


def test_copies_lie_above_the_bound_and_other_pictures_below():
    pictures = [photo(seed) for seed in range(12)]
    changed = [encoded(resized(picture, 0.5), "JPEG", quality=30) for picture in pictures]
    correlation = hashes(seen(pictures).thumbnail) @ hashes(seen(changed).thumbnail).T
    own = np.eye(12, dtype=bool)
    assert correlation[own].min() > 0.98
    assert correlation[~own].max() < 0.9


def test_a_mirrored_picture_has_the_mirrored_hash():
    picture = photo(1)
    flipped = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    one, other = (hashes(seen([image]).thumbnail).reshape(16, 16) for image in (picture, flipped))
    assert np.allclose(one[:, ::-1], other, atol=1e-2)
