"""A grid's tables: read once, and never taken for each other."""

from kinfold.config import DataSettings
from kinfold.grid.tables import Tables


def test_settings_that_decide_the_rows_tell_tables_apart_and_the_cut_of_images_does_not(tiny_photos, tmp_path):
    for label in "abcd":
        (tmp_path / label).mkdir()
        (tmp_path / label / "0.png").write_bytes((tiny_photos / f"{'abcd'.index(label)}_0.png").read_bytes())
    tables = Tables()
    half, quarter = (tables.table(DataSettings(root=str(tmp_path), test_share=share)) for share in (0.5, 0.25))
    assert [table.split.count("test") for table in (half, quarter)] == [2, 1]
    assert tables.table(DataSettings(root=str(tmp_path), test_share=0.5, size=64, resize="squash")) is half
    assert tables.table(DataSettings(root=str(tmp_path), test_share=0.5, hold_out_every=2)) is not half
