import io

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from kinfold.checks.table import check_table
from kinfold.data.datasets import table_from_dataset
from kinfold.data.read import read_table
from kinfold.images.decode import open_image
from tests.checks.pictures import encoded, photo, plain_table, resized, table_of


def codes(findings) -> list[tuple]:
    return [(finding.code, finding.rows) for finding in findings if finding.severity != "note"]


def test_every_kind_of_fault_of_one_table_is_found(tmp_path):
    images = [photo(number) for number in range(12)]
    images[7] = encoded(resized(images[0], 0.9), "JPEG", quality=50)
    images[3] = images[2]
    label = ["wren", "wren", "owl", "hawk", "owl", "hawk", "Wren", "Wren", "gull", "gull", "tern", "hawk"]
    split = ["train"] * 6 + ["test"] * 6
    for row, image in enumerate(images):
        image.save(tmp_path / f"{row}.png")
    (tmp_path / "9.png").unlink()
    findings = check_table(plain_table(label, split, root=tmp_path))
    assert codes(findings) == [
        ("missing_image", (9,)),
        ("two_labels", (0, 7)),
        ("split_leak", (0, 7)),
        ("two_labels", (2, 3)),
        ("look_alike_names", (0, 1, 6, 7)),
        ("single_image_class", (10, 11)),
        ("mixed_set", (11,)),
    ]
    assert [finding.severity for finding in findings] == ["error"] * 5 + ["warning"] * 2


def test_a_healthy_table_gives_notes_at_most(tmp_path):
    images = [(photo(number), f"class {number // 2}", "train" if number < 6 else "test") for number in range(10)]
    assert codes(check_table(table_of(tmp_path, images), workers=1)) == []


def test_folders_boxes_and_data_sets_are_checked_alike(tmp_path):
    for name in ("owl", "wren"):
        (tmp_path / "train" / name).mkdir(parents=True)
        photo(1).save(tmp_path / "train" / name / "same.png")
        photo(2 if name == "owl" else 3).save(tmp_path / "train" / name / "other.png")
    assert codes(check_table(read_table(tmp_path))) == [("two_labels", (1, 3))]

    table = table_from_dataset([(photo(1), "owl"), (photo(2), "owl"), (photo(1), "wren"), (photo(3), "wren")])
    (finding,) = [finding for finding in check_table(table) if finding.severity == "error"]
    assert (finding.code, finding.rows, finding.paths) == ("two_labels", (0, 2), ("0", "2"))

    sheet = Image.new("RGB", (240, 90))
    sheet.paste(photo(1), (0, 0))
    sheet.paste(photo(2), (120, 0))
    sheet.save(tmp_path / "sheet.png")
    photo(2).save(tmp_path / "single.png")
    sides = {"x_1": [0, 120, None], "x_2": [120, 240, None], "y_1": [0, 0, None], "y_2": [90, 90, None]}
    boxed = {"path": ["sheet.png", "sheet.png", "single.png"], "label": ["owl", "owl", "wren"], **sides}
    assert ("two_labels", (1, 2)) in codes(check_table(read_table(boxed, root=tmp_path)))


def test_an_empty_table_has_no_findings():
    assert check_table(plain_table(["a"]).subset([])) == []


def test_the_table_and_its_files_stay_as_they_were(tmp_path):
    table = table_of(tmp_path, [(photo(0), "a", "train"), (photo(0), "b", "test")])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    check_table(table)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


IDENTICAL = "are the same picture but carry"
# Pairs that no one could tell apart, seen by eye.
TRUE_COPIES = {"cub200": {(1214, 6095)}, "cars196_train": {(1702, 1754)}}


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["cub200", "cars196_train", "grocery", "omniglot_small"])
def test_photographs_give_no_false_alarm(photographs, name):
    table = read_table(photographs / name)
    findings = check_table(table, workers=2)
    errors = [finding for finding in findings if finding.severity == "error"]
    identical = [finding for finding in errors if IDENTICAL in finding.message]
    assert {finding.rows for finding in errors} - {finding.rows for finding in identical} <= TRUE_COPIES.get(name, set())
    assert {finding.code for finding in findings if finding.severity == "warning"} <= {"duplicate"}
    if name == "cars196_train":
        splits = [table.split[finding.rows[0]] for finding in identical]
        assert (splits.count("train"), splits.count("test")) == (9, 2)
        assert {len(finding.rows) for finding in identical} == {2}
    else:
        assert not identical
        assert len([finding for finding in findings if finding.code == "duplicate"]) <= 8


def changed(image: Image.Image, turn: int) -> bytes:
    """Return a file of the image, changed in one of eight ways."""
    factor = (1, 1, 1, 0.5, 0.75, 1.5, 2, 1)[turn]
    image = image if factor == 1 else resized(image, factor)
    image = ImageEnhance.Brightness(image).enhance(1.08) if turn == 7 else image
    file = io.BytesIO()
    image.save(
        file, "PNG" if turn in (3, 6) else "JPEG", **({} if turn in (3, 6) else {"quality": (30, 50, 95, 0, 70, 60, 0, 80)[turn]})
    )
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.shared_data
def test_all_of_200_changed_birds_are_found(photographs, tmp_path):
    birds = read_table(photographs / "cub200")
    chosen = np.random.default_rng(0).choice(len(birds), 200, replace=False).tolist()
    paths = [str(birds.image_path(row)) for row in chosen]
    for number, path in enumerate(list(paths)):
        file = tmp_path / f"{number}.img"
        file.write_bytes(changed(open_image(path), number % 8))
        paths.append(str(file))
    label = [birds.label[row] for row in chosen] * 2
    table = read_table({"path": paths, "label": label, "split": ["train"] * 200 + ["test"] * 200})
    leaks = [finding.rows for finding in check_table(table, workers=2) if finding.code == "split_leak"]
    assert leaks == [(row, row + 200) for row in range(200)]
