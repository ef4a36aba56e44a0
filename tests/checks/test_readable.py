from PIL import Image

from kinfold.checks.images import look_at_all
from kinfold.checks.readable import image_findings
from kinfold.data.datasets import table_from_dataset
from tests.checks.pictures import photo, plain_table


def test_every_fault_is_told_with_its_rows(tmp_path):
    photo(0).save(tmp_path / "0.png")
    (tmp_path / "1.png").write_bytes(b"")
    (tmp_path / "2.png").write_text("no image at all")
    (tmp_path / "4.png").mkdir()
    Image.new("RGB", (40, 40), "white").save(tmp_path / "5.png")
    photo(1).resize((40, 7)).save(tmp_path / "6.png")
    Image.new("RGB", (1, 1)).save(tmp_path / "7.png")
    table = plain_table(["a"] * 9, root=tmp_path)
    findings = image_findings(table, look_at_all(table))
    assert [(finding.code, finding.severity, finding.rows) for finding in findings] == [
        ("missing_image", "error", (3, 8)),
        ("unreadable_image", "error", (1,)),
        ("unreadable_image", "error", (2,)),
        ("unreadable_image", "error", (4,)),
        ("blank_image", "note", (5, 7)),
        ("small_image", "note", (6, 7)),
    ]
    messages = [finding.message for finding in findings]
    assert messages[0].startswith("2 of 9 image files do not exist; relative paths start from")
    assert "is empty (0 bytes)" in messages[1] and "not an image" in messages[2] and "is a folder" in messages[3]
    assert messages[5] == "2 images have a side below 16 pixels, the smallest 1 × 1"


def test_an_image_of_a_data_set_that_cannot_be_read_is_told(tmp_path):
    class Files:
        targets = ("a", "a")

        def __len__(self):
            return 2

        def __getitem__(self, row):
            return Image.open(tmp_path / "gone.png") if row else photo(0), "a"

    table = table_from_dataset(Files())
    (finding,) = image_findings(table, look_at_all(table))
    assert (finding.code, finding.rows) == ("unreadable_image", (1,))
    assert finding.message.startswith("image 1 of Files cannot be read")
