import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

from kinfold.checks.copies import COARSE, COLOUR, FINE, GAIN, LARGEST, TINT, are_copies, components, copies
from tests.checks.pictures import encoded, photo, resized, seen

CHANGES = {
    "JPEG 30": lambda image: encoded(image, "JPEG", quality=30),
    "JPEG 50": lambda image: encoded(image, "JPEG", quality=50),
    "JPEG 95": lambda image: encoded(image, "JPEG", quality=95),
    "WebP": lambda image: encoded(image, "WEBP", quality=60),
    "half": lambda image: resized(image, 0.5),
    "half, bilinear": lambda image: resized(image, 0.5, Image.Resampling.BILINEAR),
    "0.8": lambda image: resized(image, 0.8, Image.Resampling.LANCZOS),
    "twice": lambda image: resized(image, 2),
    "0.7, then JPEG": lambda image: encoded(resized(image, 0.7), "JPEG", quality=60),
    "half, then JPEG 30": lambda image: encoded(resized(image, 0.5), "JPEG", quality=30),
    "brighter": lambda image: encoded(ImageEnhance.Brightness(image).enhance(1.08), "JPEG", quality=75),
    "darker": lambda image: ImageEnhance.Brightness(image).enhance(0.9),
    "more contrast": lambda image: ImageEnhance.Contrast(image).enhance(1.1),
}


def judged(one: Image.Image, other: Image.Image) -> bool:
    pair = seen([one, other])
    return bool(are_copies(pair.thumbnail[:1], pair.thumbnail[1:])[0])


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_picture_is_a_copy(change):
    pictures = [photo(seed, (160, 120)) for seed in range(6)]
    changed = [CHANGES[change](picture) for picture in pictures]
    found = copies(seen(pictures + changed), np.arange(12))
    assert found.tolist() == [[row, row + 6] for row in range(6)]


def shifted(image: Image.Image, pixels: int) -> Image.Image:
    return image.crop((pixels, 0, image.width, image.height)).resize(image.size, Image.Resampling.BICUBIC)


def test_a_picture_that_is_merely_alike_is_no_copy():
    picture = photo(3, (160, 120))
    assert not judged(picture, shifted(picture, 5)), "the camera moved"
    assert not judged(picture, photo(4, (160, 120))), "another scene"
    assert not judged(picture, Image.blend(picture, photo(4, (160, 120)), 0.35)), "much of another scene"
    hue = Image.merge("RGB", picture.split()[::-1])
    assert not judged(picture, hue), "other colours"
    assert not judged(picture, ImageEnhance.Brightness(picture).enhance(0.5)), "much darker"
    assert not judged(picture, picture.filter(ImageFilter.GaussianBlur(6))), "all detail gone"


def page(word: str) -> Image.Image:
    """Return a form that differs from others by one word."""
    image = Image.new("RGB", (320, 320), "white")
    draw = ImageDraw.Draw(image)
    for line in range(20):
        draw.rectangle((20, 15 * line + 5, 90 + 37 * (line * 7 % 6), 15 * line + 9), fill="black")
    draw.rectangle((240, 288, 240 + len(word) * 6, 300), fill="black")
    return image


def test_the_same_form_with_another_word_is_no_copy():
    assert judged(page("four"), encoded(page("four"), "JPEG", quality=50))
    assert not judged(page("four"), page(""))


def test_a_change_at_one_place_or_of_all_colours_makes_another_picture():
    (thumbnail,) = seen([photo(3)]).thumbnail
    contrast = (thumbnail @ np.array([0.299, 0.587, 0.114])).std()

    def is_copy(change: np.ndarray | float, where: tuple = ()) -> bool:
        other = thumbnail.astype(float)
        other[where] += change
        return bool(are_copies(thumbnail[None], other.clip(0, 255).astype(np.uint8)[None])[0])

    row, column = np.argwhere((thumbnail > 20).all(axis=2) & (thumbnail < 255 - 1.2 * contrast).all(axis=2))[0]
    assert is_copy(0.6 * contrast, (row, column))
    assert not is_copy(1.2 * contrast, (row, column))
    tint = np.array([0.587, -0.299, 0.0])  # as bright as before
    assert is_copy(18 * tint)
    assert not is_copy(40 * tint)
    half = np.where(np.arange(32) % 2, 1, -1)[:, None, None]
    assert is_copy(18 * half * tint)
    assert not is_copy(48 * half * tint)


def by_loops(one: np.ndarray, other: np.ndarray) -> bool:
    """The definition of a copy, for one pair."""
    one, other = one.astype(float), other.astype(float)
    weights = np.array([0.299, 0.587, 0.114])

    def detail(grey):
        found = np.zeros_like(grey)
        for row in range(32):
            for column in range(32):
                around = [
                    grey[min(max(row + down, 0), 31), min(max(column + right, 0), 31)]
                    for down in (-1, 0, 1)
                    for right in (-1, 0, 1)
                ]
                found[row, column] = grey[row, column] - sum(around) / 9
        return found

    def fits(g, h, bounds):
        gain = (g * h).sum() / (g * g).sum()
        rest, contrast = h - gain * g, np.sqrt((h * h).mean())
        share, noise, at_most = bounds
        bound = min(np.sqrt((share * contrast) ** 2 + noise**2), at_most * contrast)
        return np.sqrt((rest * rest).mean()) <= bound, np.abs(rest).max() / contrast, gain

    grey, other_grey = one @ weights, other @ weights
    coarse, largest, gain = fits(grey - grey.mean(), other_grey - other_grey.mean(), COARSE)
    fine, _, _ = fits(detail(grey), detail(other_grey), FINE)
    chroma, other_chroma = one - grey[..., None], other - other_grey[..., None]
    colour = other_chroma - gain * chroma
    colour = np.sqrt(((colour - colour.mean((0, 1))) ** 2).mean())
    tint = np.abs(other_chroma.mean((0, 1)) - chroma.mean((0, 1))).max()
    return bool(coarse and fine and largest <= LARGEST and colour <= COLOUR and tint <= TINT and 1 / GAIN <= gain <= GAIN)


def test_many_pairs_at_once_are_judged_as_each_alone():
    one, other = [], []
    for seed in range(3):
        picture = photo(seed)
        for change in (*CHANGES.values(), lambda image: shifted(image, 2), lambda image: shifted(image, 4), lambda _: photo(99)):
            one.append(picture)
            other.append(change(picture))
        for share in np.linspace(0.1, 1, 10):
            one.append(picture)
            other.append(Image.blend(picture, shifted(picture, 2), float(share)))
    first, second = seen(one).thumbnail, seen(other).thumbnail
    expected = [by_loops(*pair) for pair in zip(first, second, strict=True)]
    assert are_copies(first, second).tolist() == expected
    assert 0.5 < np.mean(expected) < 0.95


def test_only_pictures_of_nearly_one_shape_are_compared():
    picture = photo(5, (160, 120))
    images = [picture, resized(picture, 0.6), picture.resize((120, 120))]
    assert copies(seen(images), np.arange(3)).tolist() == [[0, 1]]


def test_only_the_rows_asked_for_are_compared():
    picture = photo(5)
    images = [picture, None, encoded(picture, "JPEG"), photo(6), resized(picture, 0.8)]
    assert copies(seen(images), np.array([0, 3, 4])).tolist() == [[0, 4]]
    assert copies(seen(images), np.array([0, 2, 3, 4])).tolist() == [[0, 2], [0, 4], [2, 4]]


def test_mirror_images_are_found_only_when_asked_for():
    picture = photo(7)
    images = seen([picture, encoded(picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT), "JPEG", quality=70), photo(8)])
    assert copies(images, np.arange(3)).tolist() == []
    assert copies(images, np.arange(3), mirrored=True).tolist() == [[0, 1]]


@given(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=15)))
)
def test_components_are_what_can_be_reached(case):
    n, pairs = case
    reach = [{number} for number in range(n)]
    for _ in range(n):
        for one, other in pairs:
            joined = reach[one] | reach[other]
            for number in joined:
                reach[number] = reach[number] | joined
    expected = sorted({tuple(sorted(group)) for group in reach if len(group) > 1})
    assert sorted(map(tuple, components(n, pairs))) == expected
