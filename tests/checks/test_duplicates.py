import pytest
from PIL import Image

from kinfold.checks.duplicates import duplicate_findings
from tests.checks.pictures import encoded, photo, plain_table, resized, seen

A, B, C = photo(1), photo(2), photo(3)
COPY = encoded(resized(A, 0.8), "JPEG", quality=60)


def found(images: list, label: list, split: list | None = None) -> list[tuple]:
    findings = duplicate_findings(plain_table(label, split), seen(images))
    return [(finding.code, finding.severity, finding.rows) for finding in findings]


def test_distinct_pictures_give_no_finding():
    assert found([A, B, C, None], ["a", "a", "b", "b"], ["train", "train", "test", "test"]) == []


@pytest.mark.parametrize("other", [A, COPY], ids=["equal", "re-encoded"])
def test_what_a_pair_is_called_depends_on_labels_and_splits(other):
    two_labels, leak, duplicate = (
        ("two_labels", "error", (0, 2)),
        ("split_leak", "error", (0, 2)),
        ("duplicate", "warning", (0, 2)),
    )
    assert found([A, B, other], ["a", "a", "b"]) == [two_labels]
    assert found([A, B, other], ["a", "a", "a"], ["train", "train", "test"]) == [leak]
    assert found([A, B, other], ["a", "a", "b"], ["train", "train", "test"]) == [two_labels, leak]
    assert found([A, B, other], ["a", "b", "a"]) == [duplicate]
    assert found([A, B, other], ["a", "b", "a"], ["val", "train", "test"]) == [leak]


def test_a_message_tells_equal_pictures_from_copies_and_names_labels_and_splits():
    table = plain_table(["wren", "owl", "owl", "owl"], ["train", "train", "test", "test"])
    equal, leak = duplicate_findings(table, seen([A, B, C, A]))
    assert equal.message == "2 images are the same picture but carry 2 labels: 'owl' (test), 'wren' (train)"
    assert equal.paths == ("0.png", "3.png")
    assert "lie in train and test (labels 'owl', 'wren')" in leak.message
    assert leak.remedy.startswith("remove the rows of train:")
    copy = duplicate_findings(table, seen([A, B, C, COPY]))[0]
    assert copy.message.startswith(
        "2 images are copies of one picture (re-encoded, resized or slightly changed) but carry 2 labels"
    )


def test_equal_and_changed_pictures_make_one_group():
    images = [A, B, COPY, A, COPY, C]
    assert found(images, ["a", "a", "b", "a", "c", "c"]) == [("two_labels", "error", (0, 2, 3, 4))]
    assert found(images, ["a"] * 6) == [("duplicate", "warning", (0, 2, 3, 4))]


def test_every_group_is_told_once_in_the_order_of_its_rows():
    assert found([B, A, A, C, B, C], ["a"] * 6) == [("duplicate", "warning", rows) for rows in ((0, 4), (1, 2), (3, 5))]


def test_val_gives_way_to_test_and_train_to_both():
    def remedy(*split):
        (finding,) = duplicate_findings(plain_table(["a"] * len(split), list(split)), seen([A] * len(split)))
        return finding.remedy.split(":")[0]

    assert remedy("test", "val") == "remove the rows of val"
    assert remedy("val", "train") == "remove the rows of train"
    assert remedy("test", "train", "val") == "remove the rows of train and val"


def test_rows_are_the_items_of_the_whole_table():
    table = plain_table(["z", "a", "z", "a"]).subset([3, 1])
    (finding,) = duplicate_findings(table, seen([A, A]))
    assert (finding.rows, finding.paths) == ((3, 1), ("3.png", "1.png"))


def test_blank_pictures_are_equal_only_if_they_are():
    white, black = (Image.new("RGB", (50, 50), colour) for colour in ("white", "black"))
    assert found([white, black, Image.new("RGB", (60, 60), "white")], ["a", "b", "c"]) == []
    assert found([white, black, white], ["a", "b", "c"]) == [("two_labels", "error", (0, 2))]


def flipped(image: Image.Image) -> Image.Image:
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def test_a_mirror_image_is_a_warning_across_labels_or_splits_only():
    images = [A, B, encoded(flipped(A), "JPEG", quality=80)]
    assert found(images, ["a", "b", "a"]) == []
    assert found(images, ["a", "b", "b"]) == [("mirrored_copy", "warning", (0, 2))]
    assert found(images, ["a", "b", "a"], ["train", "train", "test"]) == [("mirrored_copy", "warning", (0, 2))]


def test_copies_of_a_picture_that_is_its_own_mirror_image_are_not_told_twice():
    symmetric = Image.new("RGB", (120, 90))
    symmetric.paste(A.crop((0, 0, 60, 90)), (0, 0))
    symmetric.paste(flipped(A.crop((0, 0, 60, 90))), (60, 0))
    assert found([symmetric, encoded(symmetric, "JPEG", quality=70)], ["a", "b"]) == [("two_labels", "error", (0, 1))]
