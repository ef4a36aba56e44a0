"""Which characters the demo draws: letters of five writing systems that matplotlib's text faces cover, one class per outline."""

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

# In the order in which a class that several systems share gets its name.
TRAIN_SCRIPTS = ("Latin", "Greek")
TEST_SCRIPTS = ("Cyrillic", "Georgian", "Armenian")
BLOCKS = ((0x41, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x58F), (0x10A0, 0x10FF), (0x2D00, 0x2D2F))
# Text faces only: LastResort, the cm faces, STIXNonUnicode and the STIX sizes hold placeholders and symbols, the Display faces no letters.
FACES = ("DejaVuSans[!D]*.ttf", "DejaVuSans.ttf", "DejaVuSerif[!D]*.ttf", "DejaVuSerif.ttf", "STIXGeneral*.ttf")

EM = 48
# Shared ink ÷ joint ink of two characters of one face, at EM pixels. Equal outlines lie above the first bound (Γ and Г, Ë and Ё
# included), letters that differ by an accent below it; a test character above the second is too like a training one to be unseen.
ONE_CLASS = 0.965
TOO_ALIKE = 0.94


@dataclass(frozen=True)
class Face:
    """A font file, and what Pillow draws with it."""

    path: Path

    @property
    def name(self) -> str:
        """The file's name without suffix, as in `DejaVuSans-Bold`."""
        return self.path.stem

    def font(self, em: int) -> ImageFont.FreeTypeFont:
        """Return the face at a size in pixels per em."""
        return ImageFont.truetype(str(self.path), em, layout_engine=ImageFont.Layout.BASIC)

    @cached_property
    def characters(self) -> tuple[str, ...]:
        """The letters of `BLOCKS` that the face draws: in its character map, neither blank nor the placeholder."""
        from matplotlib.ft2font import FT2Font  # 0.3 s that only the demo needs

        charmap = FT2Font(str(self.path)).get_charmap()
        letters = [
            chr(code) for first, last in BLOCKS for code in range(first, last + 1) if charmap.get(code, 0) and script(chr(code))
        ]
        font = self.font(EM)
        placeholder = _ink(font, "\uffff")
        drawn = {letter: _ink(font, letter) for letter in letters}
        return tuple(letter for letter, ink in drawn.items() if ink.any() and not np.array_equal(ink, placeholder))


@dataclass(frozen=True)
class GlyphClass:
    """Characters of one outline, and the faces that draw them.

    Attributes:
        characters: in the order of `TRAIN_SCRIPTS` and `TEST_SCRIPTS`, then by code; the first gives the class its name.
        drawn_as: face → the character that it draws: the first that it covers.
    """

    characters: tuple[str, ...]
    drawn_as: Mapping[Face, str]

    @property
    def name(self) -> str:
        """Unicode's name of the first character."""
        return unicodedata.name(self.characters[0])

    @property
    def script(self) -> str:
        """The writing system of the first character."""
        return script(self.characters[0])

    @property
    def script_case(self) -> str:
        """The writing system and case of the first character, as in `Latin upper`; `Latin` alone for letters without case, such as ƻ."""
        case = {"Lu": " upper", "Ll": " lower"}.get(unicodedata.category(self.characters[0]), "")
        return f"{self.script}{case}"

    @property
    def letter(self) -> str:
        """The letter without marks and case: A for Á and for å."""
        return unicodedata.normalize("NFD", self.characters[0])[0].upper()


def script(character: str) -> str:
    """Return the writing system of a letter; empty for everything that is no letter of the five.

    Example:
        >>> script("Ж"), script("ª"), script("1")
        ('Cyrillic', '', '')
    """
    first = unicodedata.name(character, "").split(" ")[0].capitalize()
    is_letter = unicodedata.category(character) in ("Lu", "Ll", "Lo")
    return first if is_letter and first in TRAIN_SCRIPTS + TEST_SCRIPTS else ""


def text_faces() -> tuple[Face, ...]:
    """Return the text faces of DejaVu and STIX that matplotlib ships, sorted by name."""
    import matplotlib  # only the demo needs it

    folder = Path(matplotlib.get_data_path(), "fonts", "ttf")
    return tuple(Face(path) for path in sorted({path for pattern in FACES for path in folder.glob(pattern)}))


def glyph_classes(faces: tuple[Face, ...]) -> tuple[GlyphClass, ...]:
    """Return the classes, training ones first, each in order of writing system and code.

    Two characters are one class when more than half of the faces that have both draw them with one outline, at one size and on one
    baseline: A of Latin, Greek and Cyrillic are one, upper and lower case o are two. A test character that more than half of the
    common faces draw like a training one, or almost, is left out.
    """
    in_common: Counter[tuple[str, str]] = Counter()
    one_class: Counter[tuple[str, str]] = Counter()
    too_alike: Counter[tuple[str, str]] = Counter()
    for face in faces:
        shared = _shared_ink(face)
        place = face.characters
        for first, second in np.argwhere(np.triu(shared > TOO_ALIKE, 1)):
            pair = place[first], place[second]
            too_alike[pair] += 1
            one_class[pair] += bool(shared[first, second] > ONE_CLASS)
    for pair in too_alike:
        in_common[pair] = sum(set(pair) <= set(face.characters) for face in faces)
    known = sorted({letter for face in faces for letter in face.characters}, key=_rank)
    seen = {
        other
        for pair, n in too_alike.items()
        if 2 * n > in_common[pair]
        for other in pair
        if _is_train(pair[0]) != _is_train(pair[1])
    }
    groups = _groups(known, [pair for pair, n in one_class.items() if 2 * n > in_common[pair]])
    kept = [group for group in groups if _is_train(group[0]) or not seen & set(group)]
    return tuple(GlyphClass(group, _drawn_as(group, faces)) for group in kept)


def _groups(characters: list[str], pairs: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return the connected groups, in the order of their first characters."""
    group_of = {character: [character] for character in characters}
    for first, second in pairs:
        one, other = group_of[first], group_of[second]
        if one is not other:
            one += other
            group_of.update(dict.fromkeys(other, one))
    return list(dict.fromkeys(tuple(sorted(group_of[character], key=_rank)) for character in characters))


def _drawn_as(group: tuple[str, ...], faces: tuple[Face, ...]) -> dict[Face, str]:
    first = {face: next((letter for letter in group if letter in face.characters), None) for face in faces}
    return {face: letter for face, letter in first.items() if letter is not None}


def _shared_ink(face: Face) -> np.ndarray:
    """Return shared ink ÷ joint ink of every two of a face's characters, drawn from one left edge on one baseline."""
    font = face.font(EM)
    ink = np.stack([_ink(font, letter).ravel() for letter in face.characters]).astype(np.float32)
    total, shared = ink.sum(1), ink @ ink.T
    return shared / (total[:, None] + total - shared)


def _ink(font: ImageFont.FreeTypeFont, character: str) -> np.ndarray:
    canvas = Image.new("L", (2 * EM, 2 * EM))
    left = font.getbbox(character, anchor="ls")[0]
    ImageDraw.Draw(canvas).text((4 - left, 1.4 * EM), character, fill=255, font=font, anchor="ls")
    return np.asarray(canvas) > 127


def _is_train(character: str) -> bool:
    return script(character) in TRAIN_SCRIPTS


def _rank(character: str) -> tuple[int, int]:
    return (TRAIN_SCRIPTS + TEST_SCRIPTS).index(script(character)), ord(character)
