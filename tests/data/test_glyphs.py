import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kinfold.data.alphabets import Face, GlyphClass, glyph_classes, script, text_faces
from kinfold.data.glyphs import MAX_SCALE, MAX_SHIFT, MAX_TURN_RAD, draw_glyph, write_glyphs
from kinfold.data.hierarchies import chains_of
from kinfold.data.read import read_table
from kinfold.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def few():
    """Four faces and their classes: quick, and with letters that only some of them draw."""
    faces = tuple(
        face for face in text_faces() if face.name in ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "STIXGeneral")
    )
    return faces, glyph_classes(faces)


@pytest.fixture
def quick(monkeypatch, few):
    """Let `write_glyphs` draw a handful of classes."""
    faces, classes = few
    picked = [glyph for glyph in classes if glyph.characters[0] in "AÁaoΨЖжႠⴀԱ"]
    monkeypatch.setattr("kinfold.data.glyphs.text_faces", lambda: faces)
    monkeypatch.setattr("kinfold.data.glyphs.glyph_classes", lambda faces: picked)
    return picked


class TestAlphabets:
    def test_only_text_faces_are_used(self):
        names = [face.name for face in text_faces()]
        assert len(names) == 16
        assert all(name.startswith(("DejaVuSans", "DejaVuSerif", "STIXGeneral")) and "Display" not in name for name in names)

    @pytest.mark.parametrize(
        ("character", "expected"),
        [
            ("A", "Latin"),
            ("ψ", "Greek"),
            ("Ж", "Cyrillic"),
            ("ⴀ", "Georgian"),
            ("Ա", "Armenian"),
            ("µ", ""),
            ("·", ""),
            ("\u0301", ""),
        ],
    )
    def test_the_writing_system_of_a_letter(self, character, expected):
        assert script(character) == expected

    def test_characters_of_one_outline_are_one_class_and_case_is_kept_apart(self, few):
        groups = {"".join(glyph.characters) for glyph in few[1]}
        assert any(group.startswith("AΑА") for group in groups)
        of = {character: group for group in groups for character in group}
        assert of["o"] != of["O"]
        assert of["Γ"] == of["Г"]
        assert of["E"] != of["É"]

    def test_no_test_class_holds_a_training_character_or_one_that_looks_like_it(self, few):
        tested = {
            character
            for glyph in few[1]
            if glyph.script in ("Cyrillic", "Georgian", "Armenian")
            for character in glyph.characters
        }
        assert {script(character) for character in tested} == {"Cyrillic", "Georgian", "Armenian"}
        assert not tested & set("АВЕМНОРСТХаеосрхуіјЇЀѐёՕօՍ")
        assert set("ЖЩЮЯжщюяႠԱ") <= tested

    def test_every_class_is_drawn_once_by_every_face_that_covers_it(self, few):
        faces, classes = few
        for glyph in classes:
            assert glyph.drawn_as == {
                face: next(c for c in glyph.characters if c in face.characters)
                for face in faces
                if set(glyph.characters) & set(face.characters)
            }
        assert len({character for glyph in classes for character in glyph.characters}) == sum(
            len(glyph.characters) for glyph in classes
        )

    def test_letters_nest_in_writing_systems(self, few):
        systems = {}
        for glyph in few[1]:
            systems.setdefault(glyph.letter, set()).add(glyph.script)
        assert all(len(found) == 1 for found in systems.values())

    def test_the_letter_drops_case_and_marks(self):
        assert {GlyphClass((character,), {}).letter for character in "AaÅǻ"} == {"A"}

    @pytest.mark.parametrize(
        ("character", "expected"),
        [("A", "Latin upper"), ("å", "Latin lower"), ("ƻ", "Latin"), ("Ⴀ", "Georgian upper"), ("ა", "Georgian lower")],
    )
    def test_the_case_is_unicodes_and_letters_without_case_have_none(self, character, expected):
        assert GlyphClass((character,), {}).script_case == expected


class TestDrawing:
    @pytest.mark.parametrize("character", ["A", "Ǻ", "Щ", "ǳ", "j", "Ѿ"])
    def test_a_glyph_is_black_on_white_and_never_cut_off(self, few, character):
        for seed in range(20):
            pixels = np.asarray(draw_glyph(character, few[0][0], size=32, seed=seed))
            assert pixels.shape == (32, 32)
            assert pixels.min() < 80
            assert min(pixels[0].min(), pixels[-1].min(), pixels[:, 0].min(), pixels[:, -1].min()) == 255

    def test_the_image_depends_on_seed_character_and_face_alone(self, few, tmp_path):
        """Of one outline under two codes, and of one face under two names, the variations differ."""
        face = few[0][0]
        twin = Face(Path(shutil.copy(face.path, tmp_path / "Twin.ttf")))
        first, again = (draw_glyph("A", face, size=32, seed=1).tobytes() for _ in range(2))
        assert first == again
        others = [
            draw_glyph("A", face, size=32, seed=2),
            draw_glyph("Α", face, size=32, seed=1),
            draw_glyph("A", twin, size=32, seed=1),
        ]
        assert all(other.tobytes() != first for other in others)

    def test_turns_scales_and_shifts_stay_within_their_bounds(self, few):
        """Measured on a vertical bar: its angle, its length and its middle over many seeds."""
        assert math.isclose(MAX_TURN_RAD, math.radians(8))
        assert max(MAX_SCALE, MAX_SHIFT) <= 0.15
        angles, lengths, middles = [], [], []
        for seed in range(150):
            ink = 255.0 - np.asarray(draw_glyph("l", few[0][0], size=64, seed=seed))
            y, x = np.mgrid[:64, :64]
            mean_y, mean_x = (ink * y).sum() / ink.sum(), (ink * x).sum() / ink.sum()
            spread = np.cov(np.stack([x.ravel(), y.ravel()]), aweights=ink.ravel())
            angles.append(0.5 * math.atan2(2 * spread[0, 1], spread[1, 1] - spread[0, 0]))
            lengths.append(math.sqrt(12 * np.linalg.eigvalsh(spread)[-1]))
            middles.append((mean_x / 64, mean_y / 64))
        assert math.radians(6) < max(np.abs(angles)) < math.radians(8.5)
        assert 1.2 < max(lengths) / min(lengths) < 1.38
        spread = np.ptp(np.array(middles), axis=0)
        assert (spread > MAX_SHIFT).all()
        assert (spread < 2 * MAX_SHIFT + 0.02).all()

    def test_upper_case_stands_taller_than_lower_case(self, few):
        tops = [
            np.mean(
                [np.flatnonzero((np.asarray(draw_glyph(c, few[0][0], size=48, seed=seed)) < 128).any(1))[0] for seed in range(20)]
            )
            for c in "Oo"
        ]
        assert tops[0] < tops[1] - 3


class TestFolder:
    def test_the_folder_holds_a_table_that_read_table_reads(self, quick, tmp_path):
        table = write_glyphs(tmp_path / "glyphs", size=24)
        assert read_table(tmp_path / "glyphs").label == table.label
        assert len(table) == sum(len(glyph.drawn_as) for glyph in quick)
        assert table.levels.keys() == {"letter", "script_case", "script"}
        assert set(chains_of(table)) == {("letter", "script"), ("script_case", "script")}
        assert {"Latin upper", "Latin lower", "Georgian upper"} <= set(table.levels["script_case"])
        assert {name: split for name, split in zip(table.levels["script"], table.split, strict=True)} == {
            "Latin": "train", "Greek": "train", "Cyrillic": "test", "Georgian": "test", "Armenian": "test",
        }  # fmt: skip
        table.check_disjoint()
        table.check_files()
        with Image.open(table.image_path(0)) as image:
            assert image.size == (24, 24)

    def test_the_same_settings_are_reused_and_others_replace_the_folder(self, quick, tmp_path):
        folder = tmp_path / "glyphs"
        path = write_glyphs(folder, size=24, seed=3).image_path(0)
        stamp, content = path.stat().st_mtime_ns, path.read_bytes()
        write_glyphs(folder, size=24, seed=3)
        assert path.stat().st_mtime_ns == stamp
        write_glyphs(folder, size=24, seed=4)
        assert path.read_bytes() != content
        assert json.loads((folder / "glyphs.json").read_text())["seed"] == 4
        write_glyphs(folder, size=24, seed=3)
        assert path.read_bytes() == content

    def test_a_folder_with_a_missing_image_is_drawn_again(self, quick, tmp_path):
        path = write_glyphs(tmp_path / "glyphs", size=24).image_path(0)
        path.unlink()
        write_glyphs(tmp_path / "glyphs", size=24)
        assert path.is_file()

    def test_a_failure_leaves_nothing_behind(self, quick, tmp_path, monkeypatch):
        monkeypatch.setattr("kinfold.data.glyphs.write_text", lambda path, text: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_glyphs(tmp_path / "glyphs", size=24)
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_of_something_else_is_never_touched(self, quick, tmp_path):
        (tmp_path / "thesis.tex").touch()
        with pytest.raises(DataError, match="other files"):
            write_glyphs(tmp_path, size=24)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]

    def test_an_empty_folder_is_filled(self, quick, tmp_path):
        (tmp_path / "glyphs").mkdir()
        assert len(write_glyphs(tmp_path / "glyphs", size=24))

    def test_a_size_too_small_to_read_is_refused(self, tmp_path):
        with pytest.raises(ConfigError, match="size = 8"):
            write_glyphs(tmp_path / "glyphs", size=8)


@pytest.mark.slow
def test_the_whole_data_set_has_every_writing_system_and_no_blank_or_cut_image(tmp_path):
    table = write_glyphs(tmp_path / "glyphs", size=32)
    train, test = table.of_split("train"), table.of_split("test")
    assert set(train.levels["script"]) == {"Latin", "Greek"}
    assert set(test.levels["script"]) == {"Cyrillic", "Georgian", "Armenian"}
    assert not {"CYRILLIC CAPITAL LETTER A", "CYRILLIC CAPITAL LETTER IO", "CYRILLIC SMALL LETTER YI"} & set(table.classes)
    assert len(train) > 7000
    assert len(test) > 4000
    assert min(np.bincount(table.class_index)) >= 4
    pixels = np.stack([np.asarray(Image.open(table.image_path(row))) for row in range(len(table))])
    assert pixels.min((1, 2)).max() < 128
    assert min(pixels[:, 0].min(), pixels[:, -1].min(), pixels[:, :, 0].min(), pixels[:, :, -1].min()) == 255
