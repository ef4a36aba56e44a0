"""The demo's images: characters in many typefaces, trained on two writing systems and tested on three others."""

import csv
import json
import math
from pathlib import Path
from zlib import crc32

import numpy as np
import PIL
from PIL import Image, ImageDraw, ImageFont

from kinfold.atomic import atomic_folder, write_text
from kinfold.data.alphabets import TRAIN_SCRIPTS, Face, GlyphClass, glyph_classes, text_faces
from kinfold.data.read import read_table
from kinfold.data.table import Table
from kinfold.errors import ConfigError, DataError

MAX_TURN_RAD = math.radians(8)
MAX_SCALE = 0.15
MAX_SHIFT = 0.08
# Drawn at three times the size, then averaged: edges stay smooth when the glyph is turned.
OVERSAMPLING = 3
EM = 0.64
BASELINE = 0.7
MARGIN = 0.06
SETTINGS = "glyphs.json"
VERSION = 2


def write_glyphs(folder: str | Path, *, size: int = 48, seed: int = 0) -> Table:
    """Draw the demo's data set into a folder, or read it back if it is already there with the same settings.

    One black-on-white PNG for every class (see `kinfold.data.alphabets.glyph_classes`) and every text face of DejaVu and STIX that
    covers it, turned by at most 8 degrees, scaled by at most 15 % and shifted by at most 8 % of the side, by chance of (seed,
    character, face) alone. Latin and Greek are `train`; Cyrillic, Georgian and Armenian are `test`. Levels: `letter` (without case
    and marks), `script_case` (such as Latin upper) and `script`; the first two cross, both nest in the third. The folder appears only when it is complete.

    Args:
        folder: new, empty, or written by this function; one with other settings is replaced.
        size: side of the images in pixels; >= 16.
        seed: chooses the variation.

    Returns:
        The table of the folder; its `summary()` has the counts.

    Raises:
        ConfigError: the size is too small.
        DataError: the folder holds something else.
    """
    if size < 16:
        raise ConfigError(f"size = {size}: below 16 pixels the characters cannot be told apart.")
    folder = Path(folder).absolute()
    settings = {"version": VERSION, "size": size, "seed": seed, "matplotlib": _matplotlib_version(), "pillow": PIL.__version__}
    if _is_complete(folder, settings):
        return read_table(folder)
    is_ours = (folder / SETTINGS).is_file()
    if folder.exists() and not is_ours and not (folder.is_dir() and not any(folder.iterdir())):
        raise DataError(f"{str(folder)!r} holds other files than glyphs: give a new or an empty folder.")
    with atomic_folder(folder, sync=False) as partial:  # what is lost in a power cut is drawn again
        _draw_all(partial, size=size, seed=seed)
        write_text(partial / SETTINGS, json.dumps(settings, indent=2) + "\n")
    return read_table(folder)


def draw_glyph(character: str, face: Face, *, size: int, seed: int) -> Image.Image:
    """Return one image of a character: greyscale, black on white, with its seeded variation."""
    side = OVERSAMPLING * size
    return _drawn(character, face.font(round(EM * side)), size=size, generator=_generator(character, face, seed))


def _draw_all(folder: Path, *, size: int, seed: int) -> None:
    faces = text_faces()
    classes = glyph_classes(faces)
    fonts = {face: face.font(round(EM * OVERSAMPLING * size)) for face in faces}
    rows: list[tuple[str, ...]] = [("path", "label", "label.letter", "label.script_case", "label.script", "split")]
    for glyph in classes:
        place = Path("images", f"U+{ord(glyph.characters[0]):04X}")
        (folder / place).mkdir(parents=True, exist_ok=True)
        for face, character in glyph.drawn_as.items():
            image = _drawn(character, fonts[face], size=size, generator=_generator(character, face, seed))
            image.save(folder / place / f"{face.name}.png")
            rows.append(_row(glyph, place / f"{face.name}.png"))
    lines = [",".join(row) for row in rows]
    write_text(folder / "table.csv", "\n".join(lines) + "\n")


def _row(glyph: GlyphClass, path: Path) -> tuple[str, ...]:
    split = "train" if glyph.script in TRAIN_SCRIPTS else "test"
    return path.as_posix(), glyph.name, glyph.letter, glyph.script_case, glyph.script, split


def _generator(character: str, face: Face, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, ord(character), crc32(face.name.encode())])


def _drawn(character: str, font: ImageFont.FreeTypeFont, *, size: int, generator: np.random.Generator) -> Image.Image:
    side = OVERSAMPLING * size
    turn, scale = generator.uniform(-1, 1) * MAX_TURN_RAD, 1 + generator.uniform(-1, 1) * MAX_SCALE
    shift = generator.uniform(-1, 1, 2) * MAX_SHIFT * side
    left, top, right, bottom = font.getbbox(character, anchor="ms")
    width, height = right - left, bottom - top
    cos, sin = abs(math.cos(turn)), abs(math.sin(turn))
    room = side * (1 - 2 * MARGIN)
    scale = min(scale, room / (cos * width + sin * height), room / (sin * width + cos * height))
    half = scale / 2 * np.array([cos * width + sin * height, sin * width + cos * height])
    # The glyph turns about its own middle, whose height above the baseline is kept: an o stays lower than an O.
    middle = np.array([side / 2, BASELINE * side + (top + bottom) / 2])
    middle = np.clip(middle + shift, MARGIN * side + half, side - MARGIN * side - half)
    canvas = Image.new("L", (max(side, math.ceil(width) + 2), max(side, math.ceil(height) + 2)), "white")
    own = np.array(canvas.size) / 2
    anchor = own - np.array([(left + right) / 2, (top + bottom) / 2])
    ImageDraw.Draw(canvas).text((float(anchor[0]), float(anchor[1])), character, fill="black", font=font, anchor="ms")
    inverse = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]) / scale
    offset = own - inverse @ middle
    data = (*inverse[0], offset[0], *inverse[1], offset[1])
    turned = canvas.transform((side, side), Image.Transform.AFFINE, data, Image.Resampling.BICUBIC, fillcolor="white")
    return turned.reduce(OVERSAMPLING)


def _is_complete(folder: Path, settings: dict[str, object]) -> bool:
    try:
        is_same = json.loads((folder / SETTINGS).read_text(encoding="utf-8")) == settings
        with (folder / "table.csv").open(encoding="utf-8", newline="") as file:
            return is_same and all((folder / row["path"]).is_file() for row in csv.DictReader(file))
    except (OSError, ValueError, KeyError):
        return False


def _matplotlib_version() -> str:
    from importlib.metadata import version

    return version("matplotlib")
