"""`data.taxonomy`: the table gets the file's levels, before classes are held out."""

import pytest

from kinfold.build import build_table
from kinfold.comparison.protocol import rows_digest
from kinfold.config import DataSettings, read_config
from kinfold.data.read import read_table
from kinfold.errors import ConfigError, DataError


@pytest.fixture
def taxonomy(tiny_photos, tmp_path):
    """Return a taxonomy of the tiny photographs' classes: pairs of them."""
    classes = read_table(tiny_photos).classes
    file = tmp_path / "kinds.csv"
    file.write_text("label,pair\n" + "".join(f"{name},{place // 2}\n" for place, name in enumerate(classes)))
    return file


def test_the_table_gets_the_levels_of_the_taxonomy(tiny_photos, taxonomy, monkeypatch):
    plain = build_table(DataSettings(root=str(tiny_photos)))
    table = build_table(DataSettings(root=str(tiny_photos), taxonomy=str(taxonomy), hold_out_every=3))
    assert set(table.levels) == {*plain.levels, "pair"}
    assert table.levels["pair"] == tuple(code // 2 for code in plain.class_index)
    assert len(table.split_rows("val"))
    monkeypatch.setenv("PLACE", str(taxonomy.parent))
    monkeypatch.chdir(taxonomy.parent)
    for written in ("kinds.csv", "$PLACE/kinds.csv"):
        again = build_table(DataSettings(root=str(tiny_photos), taxonomy=written))
        assert again.levels["pair"] == table.levels["pair"]


def test_another_taxonomy_is_another_measurement(tiny_photos, taxonomy):
    data = DataSettings(root=str(tiny_photos), taxonomy=str(taxonomy))
    before = rows_digest(build_table(data), levels=["pair"])
    assert before == rows_digest(build_table(data), levels=["pair"])
    text = taxonomy.read_text().splitlines()
    taxonomy.write_text("\n".join([*text[:-1], text[-1].rsplit(",", 1)[0] + ",0"]) + "\n")
    assert before != rows_digest(build_table(data), levels=["pair"])


def test_classes_that_the_taxonomy_lacks_are_listed_with_the_file(tiny_photos, taxonomy):
    text = taxonomy.read_text().splitlines()
    taxonomy.write_text("\n".join(text[:-2]) + "\n")
    with pytest.raises(DataError, match=r"`data.taxonomy` = .*kinds.csv': 2 of 8 classes are not in the hierarchy"):
        build_table(DataSettings(root=str(tiny_photos), taxonomy=str(taxonomy)))


def test_an_unset_variable_and_a_blank_name_are_refused(tiny_photos, tmp_path):
    with pytest.raises(ConfigError, match=r"`data.taxonomy` = '\$NOWHERE_SET/a.csv': set that environment variable"):
        build_table(DataSettings(root=str(tiny_photos), taxonomy="$NOWHERE_SET/a.csv"))
    (tmp_path / "a.toml").write_text('data.root = "."\ndata.taxonomy = ""\n')
    with pytest.raises(ConfigError, match="taxonomy"):
        read_config(tmp_path / "a.toml")
