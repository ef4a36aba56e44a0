import csv
import sys
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from kinfold.data.read import read_table
from kinfold.data.table import Box
from kinfold.errors import DataError, MissingExtraError

HUGE = 2**53 + 1
COLUMNS = {"path": ["a", "b", "c"], "label": ["x", "y", "x"], "split": ["train", "test", "train"]}


@pytest.fixture
def written(tmp_path):
    def write(text, name="table.csv", encoding="utf-8"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return tmp_path / name

    return write


class TestText:
    def test_a_plain_table_starts_from_its_own_folder_and_is_all_train(self, written):
        path = written("path,label\na.jpg,owl\nb.jpg,wren\n")
        table = read_table(path)
        assert table.path == ("a.jpg", "b.jpg")
        assert table.label == ("owl", "wren")
        assert table.split == ("train", "train")
        assert table.root == path.parent
        assert "no column `split`" in table.summary()

    def test_another_root_is_taken(self, written, tmp_path):
        assert read_table(written("path,label\na,1\n"), root=tmp_path / "x").root == tmp_path / "x"

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("\ufeffpath,label\na.jpg,owl\nb.jpg,wren\n", "bom.csv"),
            ("path,label\r\na.jpg,owl\r\nb.jpg,wren\r\n", "crlf.csv"),
            ("path,label\ra.jpg,owl\rb.jpg,wren", "old_mac.csv"),
            ('"path","label"\n"a.jpg","owl"\n"b.jpg","wren"', "quotes.csv"),
            ("\npath,label\n\na.jpg,owl\n\n,\nb.jpg,wren\n  \n", "blank.csv"),
            ("path\tlabel\na.jpg\towl\nb.jpg\twren\n", "tabs.tsv"),
            ("path;label\na.jpg;owl\nb.jpg;wren\n", "semicolons.csv"),
            (" path , label\na.jpg,owl\nb.jpg,wren\n", "spaces.csv"),
        ],
    )
    def test_the_habits_of_spreadsheets_are_understood(self, written, text, name):
        table = read_table(written(text, name))
        assert (table.path, table.label) == (("a.jpg", "b.jpg"), ("owl", "wren"))

    def test_quoted_cells_may_hold_anything(self, written):
        table = read_table(written('path,label\n"a, ""b""\n.jpg",ö\n'))
        assert table.path == ('a, "b"\n.jpg',)
        assert table.label == ("ö",)

    @given(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip),
            min_size=1,
            max_size=8,
            unique=True,
        )
    )
    def test_every_text_label_comes_back_as_it_was_written(self, tmp_path_factory, labels):
        path = tmp_path_factory.mktemp("t") / "table.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerows([["path", "label"], ["x", "x"], *([str(row), label] for row, label in enumerate(labels))])
        assert read_table(path).label == ("x", *labels)

    def test_a_ragged_row_is_named_by_its_line(self, written):
        with pytest.raises(DataError, match=r"line 4: 3 cells, but the header has 2"):
            read_table(written("path,label\n\na,1\nb,2,3\n"))

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "no column `path`"),
            ("path,label\n", "no rows"),
            ('path,label\na,"open\n', "quotes"),
            ("path,label,label\na,1,2\n", "'label' appear twice"),
            ("path,lable\na,1\n", "no column `label`; did you mean `lable`"),
            ("file,label\na,1\n", "no column `path`"),
        ],
    )
    def test_a_table_that_cannot_be_understood_is_refused(self, written, text, reason):
        with pytest.raises(DataError, match=reason) as error:
            read_table(written(text))
        assert "table.csv" in str(error.value)

    def test_other_encodings_other_kinds_and_missing_files(self, written, tmp_path):
        with pytest.raises(DataError, match="UTF-8"):
            read_table(written("path,label\na,ö\n", encoding="latin-1"))
        with pytest.raises(DataError, match="no kind"):
            read_table(written("path,label\na,1\n", "table.xlsx"))
        with pytest.raises(DataError, match="does not exist"):
            read_table(tmp_path / "gone.csv")


class TestLabels:
    @pytest.mark.parametrize(
        ("cells", "labels"),
        [
            (["0", "10", "9"], (0, 10, 9)),
            (["-3", str(HUGE), str(2**70)], (-3, HUGE, 2**70)),
            (["001", "1", "01"], ("001", "1", "01")),
            (["1", "2", "x"], ("1", "2", "x")),
            (["+1", "1", "2"], ("+1", "1", "2")),
            (["1.0", "1", "2"], ("1.0", "1", "2")),
            (["-0", "0", "1"], ("-0", "0", "1")),
            (["１", "1", "2"], ("１", "1", "2")),
            (["NA", "nan", "None"], ("NA", "nan", "None")),
        ],
    )
    def test_whole_numbers_are_exact_and_text_is_kept(self, written, cells, labels):
        assert read_table(written("path,label\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate(cells)))).label == labels

    def test_blank_cells_are_named_by_their_lines(self, written):
        with pytest.raises(DataError, match=r"`label` is blank in lines 3, 5"):
            read_table(written("path,label\na,1\nb, \nc,2\nd,\n"))
        with pytest.raises(DataError, match=r"`path` is blank in line 2"):
            read_table(written("path,label\n,1\n"))

    @pytest.mark.parametrize("again", ["a.jpg", "./a.jpg", "x/../a.jpg"])
    def test_an_image_may_not_appear_twice(self, written, again):
        with pytest.raises(DataError, match=r"twice, in lines 2, 4"):
            read_table(written(f"path,label\na.jpg,1\nb.jpg,1\n{again},1\n"))


class TestColumns:
    def test_an_open_metric_learning_table_is_read_as_it_is(self, written):
        table = read_table(
            written(
                "label,path,split,is_query,is_gallery,category,sequence,x_1,x_2,y_1,y_2\n"
                "7,a.jpg,train,,,rug,s1,,,,\n"
                "8,b.jpg,train,,,sofa,,10,20,5,9\n"
                "3,c.jpg,validation,True,False,rug,s2,0,4,0,4\n"
                "3,d.jpg,validation,False,True,rug,s2,0.0,4.0,0.0,4.0\n"
            )
        )
        assert table.label == (7, 8, 3, 3)
        assert table.split == ("train", "train", "val", "val")
        assert table.levels == {"category": ("rug", "sofa", "rug", "rug")}
        assert table.sequence == ("s1", None, "s2", "s2")
        assert table.is_query.tolist() == [False, False, True, False]
        assert table.is_gallery.tolist() == [False, False, False, True]
        assert table.boxes == (None, Box(10, 20, 5, 9), Box(0, 4, 0, 4), Box(0, 4, 0, 4))

    def test_an_unknown_split_is_named_with_its_line(self, written):
        with pytest.raises(DataError, match=r"split 'trian' in line 3 is not known; did you mean `train`"):
            read_table(written("path,label,split\na,1,train\nb,1,trian\n"))
        with pytest.raises(DataError, match=r"split ''"):
            read_table(written("path,label,split\na,1,\n"))

    def test_a_flag_that_is_neither_yes_nor_no(self, written):
        with pytest.raises(DataError, match=r"`is_query` is 'maybe' in line 2"):
            read_table(written("path,label,is_query,is_gallery\na,1,maybe,0\n"))

    def test_flags_and_boxes_come_whole(self, written):
        with pytest.raises(DataError, match="has is_query but not is_gallery"):
            read_table(written("path,label,is_query\na,1,1\n"))
        with pytest.raises(DataError, match="has x_1, x_2, y_1 but not y_2"):
            read_table(written("path,label,x_1,x_2,y_1\na,1,1,2,3\n"))

    @pytest.mark.parametrize(
        ("cells", "reason"),
        [
            ("5,5,0,1", "out of order"),
            ("0,1,3,2", "out of order"),
            ("-1,1,0,1", "out of order"),
            ("0,1,0,", "partly"),
            ("0,1,0,1.5", "whole pixels"),
        ],
    )
    def test_a_wrong_box_is_named(self, written, cells, reason):
        with pytest.raises(DataError, match=rf"box in line 3 .*{reason}"):
            read_table(written(f"path,label,x_1,x_2,y_1,y_2\na,1,,,,\nb,1,{cells}\n"))

    def test_one_picture_may_show_several_boxes(self, written):
        text = "path,label,x_1,x_2,y_1,y_2\na,1,0,5,0,5\na,2,5,9,0,5\n"
        assert len(read_table(written(text))) == 2
        with pytest.raises(DataError, match="twice"):
            read_table(written(text + "a,2,5,9,0,5\n"))

    def test_a_class_in_two_groups_is_named_with_both(self, written):
        with pytest.raises(DataError, match=r"class 'owl' belongs to two groups of level `family`: 'x' and 'y' \(lines 2, 4\)"):
            read_table(written("path,label,label.family\na,owl,x\nb,gull,x\nc,owl,y\n"))

    @pytest.mark.parametrize("header", ["label.", "label.category,category"])
    def test_levels_need_names_of_their_own(self, written, header):
        cells = ",".join("x" for _ in header.split(","))
        with pytest.raises(DataError, match="no new name"):
            read_table(written(f"path,label,{header}\na,1,{cells}\n"))


class TestFrames:
    @pytest.mark.parametrize(
        "frame",
        [
            pd.DataFrame(COLUMNS),
            pd.DataFrame(COLUMNS, index=[7, 7, 2]),
            pd.DataFrame(COLUMNS).astype({"label": "category", "split": "category"}),
            pd.DataFrame(COLUMNS).astype({"label": "string"}),
            pl.DataFrame(COLUMNS),
            pl.DataFrame(COLUMNS).with_columns(pl.col("label").cast(pl.Categorical)),
            COLUMNS,
        ],
        ids=["pandas", "pandas index", "pandas category", "pandas string", "polars", "polars category", "mapping"],
    )
    def test_frames_of_every_kind_give_the_same_table(self, frame):
        table = read_table(frame)
        assert (table.path, table.label, table.split) == tuple(tuple(column) for column in COLUMNS.values())
        assert table.item.tolist() == [0, 1, 2]

    @pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, dict])
    def test_numbers_stay_numbers_and_text_stays_text(self, library):
        assert read_table(library({"path": ["a", "b"], "label": [HUGE, HUGE - 1]})).label == (HUGE, HUGE - 1)
        assert read_table(library({"path": ["a", "b"], "label": ["1", "02"]})).label == ("1", "02")
        assert all(type(label) is int for label in read_table(library({"path": ["a", "b"], "label": np.array([3, 4])})).label)

    @pytest.mark.parametrize(
        "missing",
        [pd.DataFrame({"l": ["x", None]}), pd.DataFrame({"l": pd.array([1, pd.NA], "Int64")}), pl.DataFrame({"l": ["x", None]})],
    )
    def test_missing_values_are_blank(self, missing):
        with pytest.raises(DataError, match=r"`label` is blank in row 1\b"):
            read_table({"path": ["a", "b"], "label": missing["l"]})

    def test_optional_cells_may_be_missing_in_a_frame(self):
        frame = pd.DataFrame(
            {
                "path": ["a", "b"],
                "label": [1, 2],
                "is_query": [None, True],
                "is_gallery": [float("nan"), 1.0],
                "camera": [None, "c"],
            }
        )
        for side in ("x_1", "y_1"):
            frame[side] = [float("nan"), 0.0]
            frame[side.replace("1", "2")] = [float("nan"), 9.0]
        table = read_table(frame)
        assert table.is_query.tolist() == table.is_gallery.tolist() == [False, True]
        assert table.camera == (None, "c")
        assert table.boxes == (None, Box(0, 9, 0, 9))

    def test_floating_point_labels_are_refused(self):
        with pytest.raises(DataError, match=r"floating-point number 1\.5 in row 0"):
            read_table({"path": ["a"], "label": [1.5]})

    def test_whole_numbers_that_a_frame_holds_as_floats_are_whole_numbers_again(self):
        table = read_table({"path": ["a", "b"], "label": [3.0, -4.0]})
        assert table.label == (3, -4)
        assert all(type(label) is int for label in table.label)

    @pytest.mark.parametrize("label", [2.0**53, np.float32(2.0**24), float("inf")])
    def test_floats_that_may_stand_for_two_numbers_are_refused(self, label):
        with pytest.raises(DataError, match="cannot name a class"):
            read_table({"path": ["a"], "label": [label]})

    def test_a_missing_label_among_floats_is_called_missing(self):
        with pytest.raises(DataError, match="`label` is blank in row 1"):
            read_table({"path": ["a", "b"], "label": [3.0, float("nan")]})

    def test_columns_of_unequal_length_and_other_objects_are_refused(self):
        with pytest.raises(DataError, match="equally long"):
            read_table({"path": ["a"], "label": [1, 2]})
        with pytest.raises(DataError, match="type int"):
            read_table(3)


class TestParquet:
    def test_a_parquet_file_is_read_with_its_types(self, tmp_path):
        columns = {"path": ["a", "b"], "label": [HUGE, 2**63 - 1], "split": ["train", "validation"], "label.kind": ["x", "y"]}
        parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
        table = read_table(tmp_path / "t.parquet")
        assert table.label == (HUGE, 2**63 - 1)
        assert table.split == ("train", "val")
        assert table.root == tmp_path

    def test_without_pyarrow_the_extra_is_named(self, tmp_path, monkeypatch):
        (tmp_path / "t.parquet").touch()
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(MissingExtraError, match=r"kinfold\[parquet\]"):
            read_table(tmp_path / "t.parquet")

    def test_a_damaged_file_is_named(self, tmp_path):
        (tmp_path / "t.parquet").write_bytes(b"PAR1 no")
        with pytest.raises(DataError, match=r"t\.parquet"):
            read_table(tmp_path / "t.parquet")


def test_a_hundred_thousand_rows_are_read_within_two_seconds(tmp_path):
    rows = "".join(f"images/{row // 20}/{row}.jpg,class {row // 20},group {row // 200},train\n" for row in range(100_000))
    (tmp_path / "table.csv").write_text("path,label,label.group,split\n" + rows)
    start = time.process_time()  # other work on the machine does not count
    table = read_table(tmp_path)
    assert table.n_classes == 5000
    assert len(table.class_index) == 100_000
    assert time.process_time() - start < 2


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "n_images", "train", "test", "chain"),
    [
        ("cub200", 11788, (5864, 100), (5924, 100), ("family", "order")),
        ("cars196_train", 8144, (4052, 98), (4092, 98), ()),
        ("grocery", 5421, (2781, 41), (2640, 40), ("coarse", "top")),
        ("omniglot_small", 4840, (2720, 136), (2120, 106), ("alphabet",)),
    ],
)
def test_the_photograph_sets_are_read_with_the_counts_of_their_descriptions(photographs, name, n_images, train, test, chain):
    table = read_table(photographs / name)
    assert len(table) == n_images
    for split, counts in (("train", train), ("test", test)):
        part = table.of_split(split)
        assert (len(part), part.n_classes) == counts
    assert table.chain() == chain
    table.check_disjoint()
    table.check_files()


@pytest.mark.shared_data
def test_levels_and_queries_of_the_photograph_sets(photographs):
    birds, cars, grocery = (read_table(photographs / name) for name in ("cub200", "cars196_train", "grocery"))
    assert [len(birds.level_names(level)) for level in ("family", "order")] == [37, 13]
    assert [len(cars.level_names(level)) for level in ("make", "body")] == [49, 9]
    assert not cars.nests("make", "body")
    assert not cars.nests("body", "make")
    test = grocery.of_split("test")
    assert (test.is_query.sum(), test.is_gallery.sum()) == (1197, 1443)
