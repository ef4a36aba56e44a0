import io
import struct
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from kinfold.errors import ConfigError, DataError
from kinfold.images.decode import open_image


def bytes_of(image, format="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def corner_image(width=40, height=24):
    """Black with a white top left quarter: every turn and flip shows."""
    image = Image.new("RGB", (width, height), "black")
    image.paste("white", (0, 0, width // 2, height // 2))
    return image


def pixel(source, x=0, y=0):
    return open_image(source).getpixel((x, y))


class TestSources:
    def test_every_kind_of_source_gives_the_same_picture(self, tmp_path):
        image = corner_image()
        data = bytes_of(image)
        path = tmp_path / "a.png"
        path.write_bytes(data)
        for source in (path, str(path), data, io.BytesIO(data), image, np.asarray(image)):
            found = open_image(source)
            assert found.mode == "RGB"
            assert np.array_equal(np.asarray(found), np.asarray(image))

    def test_the_result_shares_nothing_with_a_given_image(self):
        image = corner_image()
        open_image(image).putpixel((0, 0), (1, 2, 3))
        assert image.getpixel((0, 0)) == (255, 255, 255)

    def test_an_open_file_is_left_open(self):
        file = io.BytesIO(bytes_of(corner_image()))
        open_image(file)
        assert not file.closed

    @pytest.mark.parametrize("size", [0, -1, 1.5, True, "8"])
    def test_a_size_that_is_no_number_of_pixels_is_refused(self, size):
        with pytest.raises(ConfigError, match="size"):
            open_image(corner_image(), size=size)


class TestArrays:
    def test_grey_in_two_or_three_axes_is_grey(self):
        grey = np.full((3, 4), 7, np.uint8)
        assert pixel(grey) == pixel(grey[:, :, None]) == (7, 7, 7)

    def test_truth_values_are_black_and_white(self):
        assert pixel(np.array([[False, True]]), 1, 0) == (255, 255, 255)

    def test_an_alpha_channel_is_laid_on_white(self):
        assert pixel(np.zeros((2, 2, 4), np.uint8)) == (255, 255, 255)

    def test_sixteen_bits_are_scaled(self):
        assert pixel(np.full((2, 2), 257 * 9, np.uint16)) == (9, 9, 9)

    @pytest.mark.parametrize(
        "array",
        [
            np.zeros((3, 4, 4)),
            np.zeros((4, 4), np.float32),
            np.zeros((3, 9, 9), np.uint8),
            np.zeros(5, np.uint8),
            np.zeros((0, 3, 3), np.uint8),
        ],
    )
    def test_an_array_that_is_no_picture_is_refused_with_its_shape(self, array):
        with pytest.raises(DataError, match=str(array.shape).replace("(", r"\(").replace(")", r"\)")):
            open_image(array)


class TestModes:
    def test_one_bit(self):
        assert pixel(bytes_of(Image.new("1", (4, 4), 1))) == (255, 255, 255)

    def test_grey(self):
        assert pixel(bytes_of(Image.new("L", (4, 4), 77))) == (77, 77, 77)

    def test_a_palette_gives_its_colours(self):
        image = Image.new("RGB", (4, 4), (250, 10, 20)).quantize(4)
        assert pixel(bytes_of(image)) == (250, 10, 20)

    def test_a_transparent_palette_entry_is_white(self):
        image = Image.new("P", (4, 4), 0)
        image.putpalette([10, 20, 30, 200, 100, 50])
        image.putpixel((1, 0), 1)
        data = bytes_of(image, transparency=0)
        assert pixel(data) == (255, 255, 255)
        assert pixel(data, 1, 0) == (200, 100, 50)

    def test_half_transparent_black_is_mid_grey(self):
        assert pixel(bytes_of(Image.new("RGBA", (4, 4), (0, 0, 0, 127)))) == (128, 128, 128)
        assert pixel(bytes_of(Image.new("LA", (4, 4), (0, 127)))) == (128, 128, 128)

    def test_a_colour_declared_transparent_is_white(self):
        data = bytes_of(Image.new("RGB", (4, 4), (9, 8, 7)), transparency=(9, 8, 7))
        assert pixel(data) == (255, 255, 255)

    def test_cmyk_jpegs_keep_their_colours(self):
        """Pillow writes CMYK inverted, with Adobe's marker, as Photoshop does."""
        red, _, blue = pixel(bytes_of(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=95))
        assert red > 240
        assert blue < 15

    @pytest.mark.parametrize(("value", "expected"), [(0, 0), (128, 0), (129, 1), (257, 1), (32768, 128), (65535, 255)])
    def test_sixteen_bit_grey_is_divided_by_257_and_rounded(self, value, expected):
        image = Image.fromarray(np.full((4, 4), value, np.uint16))
        assert pixel(bytes_of(image)) == pixel(bytes_of(image, "TIFF")) == (expected,) * 3

    def test_big_endian_sixteen_bits(self):
        image = Image.frombytes("I;16B", (1, 1), (257 * 200).to_bytes(2, "big"))
        assert pixel(image) == (200, 200, 200)

    def test_thirty_two_bit_whole_numbers_count_as_sixteen_bit_grey(self):
        assert pixel(Image.new("I", (2, 2), 257 * 100)) == (100, 100, 100)

    @pytest.mark.parametrize(("high", "expected"), [(1.0, 255), (0.5, 128), (200.0, 200), (25700.0, 100)])
    def test_floating_point_grey_takes_the_smallest_range_that_holds_it(self, high, expected):
        assert pixel(Image.new("F", (2, 2), high)) == (expected,) * 3

    @pytest.mark.parametrize("value", [-1.0, 70000.0, float("nan")])
    def test_grey_values_without_a_meaning_are_refused(self, value):
        with pytest.raises(DataError, match="8 or 16 bits"):
            open_image(Image.new("F", (2, 2), value))

    def test_of_an_animation_the_first_frame_is_taken(self):
        frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "lime", "blue")]
        data = bytes_of(frames[0], "GIF", save_all=True, append_images=frames[1:])
        assert pixel(data) == (255, 0, 0)


class TestOrientation:
    @pytest.mark.parametrize("orientation", range(1, 9))
    @pytest.mark.parametrize("size", [None, 30])
    def test_every_exif_orientation_comes_out_upright(self, orientation, size):
        exif = Image.Exif()
        exif[0x0112] = orientation
        stored = corner_image(320, 192)
        data = bytes_of(stored, "JPEG", exif=exif, quality=95)
        expected = np.asarray(
            ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("L").resize((8, 8), Image.Resampling.BOX)
        )
        found = open_image(data, size=size)
        assert (found.width < found.height) == (orientation >= 5)
        assert np.abs(np.asarray(found.convert("L").resize((8, 8), Image.Resampling.BOX)).astype(int) - expected).max() < 12

    def test_a_picture_is_never_turned_twice(self):
        exif = Image.Exif()
        exif[0x0112] = 6
        once = open_image(bytes_of(corner_image(), "JPEG", exif=exif))
        assert np.array_equal(np.asarray(open_image(once)), np.asarray(once))
        assert open_image(bytes_of(once)).size == once.size

    def test_damaged_exif_data_is_ignored_without_a_warning(self):
        data = bytes_of(corner_image(), "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xffnonsense")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert open_image(data).size == (40, 24)


class TestDraft:
    @settings(max_examples=40, deadline=None)
    @given(width=st.integers(1, 300), height=st.integers(1, 300), size=st.integers(1, 300))
    def test_a_jpeg_is_decoded_at_the_smallest_scale_that_is_not_below_the_needed_size(self, width, height, size):
        found = open_image(bytes_of(Image.new("RGB", (width, height)), "JPEG"), size=size)
        short = min(width, height)
        scales = [scale for scale in (1, 2, 4, 8) if short // scale >= size] or [1]
        assert found.size == (-(-width // scales[-1]), -(-height // scales[-1]))

    def test_other_formats_keep_their_size(self):
        assert open_image(bytes_of(Image.new("RGB", (64, 64))), size=8).size == (64, 64)

    def test_a_grey_jpeg_may_be_drafted(self):
        assert open_image(bytes_of(Image.new("L", (64, 64), 90), "JPEG"), size=16).size == (16, 16)


class TestWhatCannotBeRead:
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "empty"),
            (b"not an image at all", "not an image"),
            (bytes_of(Image.effect_noise((64, 64), 50), "JPEG")[:-900], "broken"),
            (bytes_of(Image.effect_noise((64, 64), 50), "PNG")[:-900], "broken"),
            (bytes_of(Image.effect_noise((64, 64), 50), "WEBP")[:40], "not an image|broken"),
            (b"P6 60000 60000 255\n", "too large"),
        ],
        ids=["empty", "text", "jpeg", "png", "webp", "bomb"],
    )
    @pytest.mark.parametrize("as_bytes", [True, False])
    def test_the_error_names_the_file_and_the_reason(self, tmp_path, content, reason, as_bytes):
        path = tmp_path / "poor.jpg"
        path.write_bytes(content)
        with pytest.raises(DataError, match=reason) as error:
            open_image(content if as_bytes else path)
        assert (f"{len(content):,} bytes" if as_bytes else "poor.jpg") in str(error.value)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(DataError, match=r"gone\.png.*does not exist"):
            open_image(tmp_path / "gone.png")

    def test_a_folder(self, tmp_path):
        with pytest.raises(DataError, match="is a folder"):
            open_image(tmp_path)

    @pytest.mark.parametrize("source", [None, 3, [1, 2]])
    def test_something_else(self, source):
        with pytest.raises(DataError, match=type(source).__name__):
            open_image(source)

    def test_a_truncated_image_that_was_opened_but_not_loaded(self):
        lazy = Image.open(io.BytesIO(bytes_of(Image.effect_noise((64, 64), 50), "JPEG")[:-900]))
        with pytest.raises(DataError, match="broken"):
            open_image(lazy)

    @pytest.mark.parametrize(
        "error", [OSError, SyntaxError, ValueError, TypeError, IndexError, EOFError, OverflowError, struct.error]
    )
    def test_whatever_pillow_raises_for_damage_becomes_a_data_error(self, error, monkeypatch, tmp_path):
        def fail(image):
            raise error("damaged")

        (tmp_path / "a.png").write_bytes(bytes_of(corner_image()))
        monkeypatch.setattr("PIL.PngImagePlugin.PngImageFile.load", fail)
        with pytest.raises(DataError, match=r"a\.png.*is broken: damaged"):
            open_image(tmp_path / "a.png")

    def test_a_large_file_below_the_limit_gives_no_warning(self, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 3000)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert open_image(bytes_of(Image.new("RGB", (64, 64)))).size == (64, 64)

    @settings(max_examples=150, deadline=None)
    @given(data=st.data())
    def test_damaged_files_give_a_picture_or_a_data_error_and_nothing_else(self, data):
        format = data.draw(st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"]))
        content = bytearray(bytes_of(corner_image(16, 12), format))
        for _ in range(data.draw(st.integers(1, 6))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        content = bytes(content[: data.draw(st.integers(0, len(content)))])
        try:
            assert open_image(content).mode == "RGB"
        except DataError as error:
            assert "bytes" in str(error)
