"""Taxonomies in files: every form gives the same tree, files come back, and each fault has one message with its lines."""

import csv
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kinfold.core.hierarchy import Hierarchy, Level, hierarchy_from_groups
from kinfold.data.hierarchies import hierarchy_of, with_hierarchy
from kinfold.data.read import read_table
from kinfold.data.taxonomy_file import read_hierarchy, write_hierarchy
from kinfold.errors import ConfigError, DataError

CLASSES = ["wren", "robin", "owl", "cod"]
BY_DEPTH = hierarchy_from_groups(
    CLASSES, {"depth_2": ["song", "song", "owl", "cod"], "depth_1": ["bird", "bird", "bird", "fish"]}
)
TREE = "child,parent\nwren,song\nrobin,song\nowl,bird\ncod,fish\nsong,bird\nbird,animal\nfish,animal\n"


@pytest.fixture
def reading(tmp_path):
    """Return a function: text → the hierarchy of a file with that text."""

    def read(text: str | bytes, name: str = "taxonomy.csv") -> Hierarchy:
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_hierarchy(tmp_path / name)

    return read


class TestForms:
    @pytest.mark.parametrize(
        "text",
        [
            TREE,
            TREE + "animal,\n",
            TREE + "wren,song\n",
            "parent;child;remark\n" + "\n".join(";".join([*reversed(row.split(",")), "x"]) for row in TREE.split()[1:]),
            "label,path\nwren,animal/bird/song\nrobin,animal/bird/song\nowl,animal/bird\ncod,animal/fish\n",
            "label,path\nwren,animal/bird/song/wren\nrobin,animal/bird/song/robin\nowl,/animal/bird/owl\ncod,animal/fish/cod/\n",
            "path\nanimal/bird/song/wren\nanimal/bird/song/robin\nanimal/bird/owl\nanimal/fish/cod\n",
            "path\nanimal > bird > song > wren\nanimal > bird > song > robin\nanimal > bird > owl\nanimal > fish > cod\n",
            "path\nanimal|bird|song|wren\nanimal|bird|song|robin\nanimal|bird|owl\nanimal|fish|cod\n",
        ],
        ids=["tree", "blank root", "row twice", "other columns", "label and path", "ends in label", "path", "arrows", "bars"],
    )
    def test_each_form_says_the_same(self, reading, text):
        assert reading(text) == BY_DEPTH

    @pytest.mark.parametrize(
        "text",
        [
            "label,family,order\nwren,song,bird\ncod,fish,fish\nrobin,song,bird\n",
            "order,label,family\nbird,wren,song\nfish,cod,fish\nbird,robin,song\n",
            "label,label.family,label.order,remark\nwren,song,bird,a\ncod,fish,fish,b\nrobin,song,bird,a\n",
            "path,label,label.family,label.order\n1.jpg,wren,song,bird\n2.jpg,cod,fish,fish\n3.jpg,wren,song,bird\n4.jpg,robin,song,bird\n",
        ],
        ids=["plain", "any order", "marked", "table of images"],
    )
    def test_a_column_for_each_level(self, reading, text):
        assert reading(text).columns() == {"family": ("song", "fish", "song"), "order": ("bird", "fish", "bird")}

    def test_category_is_a_level_where_levels_are_marked(self, reading):
        tree = reading("label,label.family,category\nwren,song,bird\nowl,owls,bird\ncod,fish,fish\n")
        assert tree.names == ("family", "category")

    def test_slashes_stay_in_names_where_another_sign_cuts(self, reading):
        assert reading("path\nrock > AC/DC > a\nrock > AC/DC > b\nrock > Queen > c\n").members("depth_1") == {
            "AC/DC": ("a", "b"),
            "Queen": ("c",),
        }

    def test_a_class_called_as_its_group_stays_in_it(self, reading):
        tree = reading("label,path\nwren,bird/wren\ngoldcrest,bird/wren\nowl,bird/night\n")
        assert tree.columns() == {"depth_1": ("wren", "wren", "night")}

    def test_a_blank_path_is_a_root(self, reading):
        assert reading("label,path\nwren,bird\nowl,bird\nfire,\n").columns() == {"depth_0": ("bird", "bird", "fire")}

    def test_spaces_around_names_byte_order_mark_blank_lines_and_nameless_columns_do_no_harm(self, reading):
        text = "\ufeff label , family ,\r\n\r\n wren , song ,\r\n owl,night,\r\n,,\r\nrobin,song,\r\n"
        assert reading(text) == hierarchy_from_groups(["wren", "owl", "robin"], {"family": ["song", "night", "song"]})

    def test_a_tsv_is_cut_at_tabs(self, reading):
        assert reading("label\tfamily\nwren, winter\tsong\nowl\tnight\nrobin\tsong\n", "a.tsv").classes[0] == "wren, winter"

    @pytest.mark.parametrize(
        "text",
        [
            "label,family\n12,3\n7,4\n9,3\n",
            "child,parent\n12,3\n7,4\n9,3\n",
            "path\n3/12\n4/7\n3/9\n",
            "label,path\n12,3\n7,4\n9,3\n",
        ],
    )
    def test_whole_numbers_are_numbers_in_every_form(self, reading, text):
        tree = reading(text)
        assert tree.classes == (12, 7, 9)
        assert tree.groups_of(tree.names[0]) == (3, 4, 3)

    def test_numbers_are_told_class_by_class_and_level_by_level(self, reading):
        tree = reading("child,parent\n12,bird\n7,bird\n9,fish\nbird,animal\nfish,animal\n")
        assert tree.members("depth_1") == {"bird": (12, 7), "fish": (9,)}
        assert reading("label,family\n001,3\n2,4\n3,3\n").classes == ("001", "2", "3")

    def test_parquet_is_read(self, tmp_path):
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {
            "child": ["wren", "owl", "cod", "bird", "fish", "animal"],
            "parent": ["bird", "bird", "fish", "animal", "animal", None],
        }
        parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
        assert read_hierarchy(tmp_path / "a.parquet").members("depth_1") == {"bird": ("wren", "owl"), "fish": ("cod",)}


class TestFolders:
    def make(self, root: Path, *images: str) -> Path:
        for image in images:
            (root / image).parent.mkdir(parents=True, exist_ok=True)
            (root / image).touch()
        return root

    def test_nested_folders_are_levels_with_the_class_names_of_the_table(self, tmp_path):
        folder = self.make(
            tmp_path, "bird/song/wren/1.jpg", "bird/song/robin/1.jpg", "bird/night/owl/1.jpg", "fish/sea/cod/1.jpg"
        )
        tree = read_hierarchy(folder)
        assert tree == hierarchy_of(read_table(folder))
        assert tree.columns() == {
            "level_1": ("bird/night", "bird/song", "bird/song", "fish/sea"),
            "level_2": ("bird", "bird", "bird", "fish"),
        }

    def test_folders_without_a_level_are_refused(self, tmp_path):
        with pytest.raises(ConfigError, match="no coarser level"):
            read_hierarchy(self.make(tmp_path, "wren/1.jpg", "owl/1.jpg"))

    def test_a_taxonomy_with_numbers_fits_folders_called_by_numbers(self, tmp_path):
        table = read_table(self.make(tmp_path / "images", "12/1.jpg", "7/1.jpg"))
        (tmp_path / "a.csv").write_text("label,kind\n7,a\n12,b\n")
        assert with_hierarchy(table, read_hierarchy(tmp_path / "a.csv")).levels == {"kind": ("b", "a")}


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (TREE + "wren,fish\n", r"'wren' has two parents, 'song' and 'fish' \(lines 2, 9\)"),
            (TREE + "bird,\n", r"'bird' has two parents, 'animal' and none \(a root\) \(lines 7, 9\)"),
            (TREE + "animal,wren\n", r"taxonomy.csv': the parents go round in a circle: 'wren' → 'song'"),
            (TREE + ",fish\n", "column `child` is blank in line 9"),
            ("child,parent\nwren,bird\nowl,bird\n", "taxonomy.csv': the taxonomy of 2 classes has no level"),
            ("child,parent\n", "has no rows.*`child`, `parent`"),
            ("label,family\n", "has no rows"),
            ("", "has no rows"),
            ("label\nwren\n", "columns `label`, which make no taxonomy. Expected"),
            ("name,family\nwren,song\n", "columns `name`, `family`, which make no taxonomy. Expected"),
            ("child,family\nwren,song\n", "which make no taxonomy"),
            ("label,child,parent\na,b,c\n", "several taxonomies"),
            ("label,family\nwren,\nowl,night\n", "column `family` is blank in line 2"),
            ("label,family\nwren,song\nowl,night\nwren,night\n", r"class 'wren' belongs to two groups of level `family`: 'song' and 'night' \(lines 2, 4\)"),
            ("label,body,make\n1,SUV,Audi\n2,van,Audi\n3,van,Seat\n", "taxonomy.csv': levels `body` and `make` cross"),
            ("label,path\nwren,a/b\nwren,a/c\n", r"class 'wren' belongs to two paths: 'a/b' and 'a/c' \(lines 2, 3\)"),
            ("path\nbirds/other\nfish/other\n", r"class 'other' belongs to two paths: 'birds' and 'fish' \(lines 2, 3\)"),
            ("path\nbird//wren\nbird/owl\n", "a path has a blank name in line 2"),
            ("path,remark\nbird/wren,a\n,b\n", "column `path` is blank in line 3"),
            ("path\nbird/wren\nbird/wren/eurasian\nfish/cod\n", "class 'wren' lies above class 'eurasian'"),
            ("label,family\nwren\n", "line 2: 1 cells"),
            ("label,family,family\nwren,a,b\n", "appear twice"),
            ("label,label\nwren,a\n", "appear twice"),
            ("label,label.\nwren,a\n", "each needs a name"),
            ("label,\nwren,a\n", "each needs a name"),
            ("label,label.label\nwren,a\nowl,b\n", "'label' comes twice"),
            ("label,family\nJäger,a\n".encode("latin-1"), "not UTF-8"),
        ],
    )  # fmt: skip
    def test_each_fault_has_one_message_with_file_and_place(self, reading, text, message):
        with pytest.raises(DataError, match=message) as caught:
            reading(text)
        assert str(caught.value).count("taxonomy.csv") == 1

    def test_a_missing_file_and_an_unknown_kind_are_refused(self, tmp_path):
        with pytest.raises(DataError, match="does not exist"):
            read_hierarchy(tmp_path / "nowhere.csv")
        (tmp_path / "tree.json").write_text("{}")
        with pytest.raises(DataError, match="no kind that can be read"):
            read_hierarchy(tmp_path / "tree.json")
        with pytest.raises(DataError, match=r"cannot be written.*\.csv"):
            write_hierarchy(BY_DEPTH, tmp_path / "tree.json")


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]) | st.sampled_from(',;"\n'),
    min_size=1,
    max_size=6,
)


@st.composite
def nested_columns(draw) -> tuple[list[str], dict[str, list[str | int]]]:
    classes = draw(st.lists(NAMES.map(lambda name: f"a{name}z") | st.just("12"), min_size=1, max_size=8, unique=True))
    columns, column = {}, list(range(len(classes)))
    for level in range(draw(st.integers(1, 3))):
        dealt = {group: draw(st.integers(0, 3)) for group in dict.fromkeys(column)}
        column = [dealt[group] for group in column]
        prefix = draw(st.sampled_from(["", "g/", "Gruppe "]))
        columns[f"level {level}"] = [f"{prefix}{group}" if prefix else group for group in column]
    return classes, columns


class TestWrite:
    @given(nested_columns(), st.sampled_from(["a.csv", "a.tsv"]))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    def test_what_is_written_comes_back(self, tmp_path, drawn, name):
        tree = hierarchy_from_groups(*drawn)
        write_hierarchy(tree, tmp_path / name)
        expected = tree if tree.classes != ("12",) else hierarchy_from_groups([12], tree.columns())
        assert read_hierarchy(tmp_path / name) == expected

    def test_the_file_has_the_columns_of_a_table(self, tmp_path):
        write_hierarchy(BY_DEPTH, tmp_path / "a.csv")
        with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        assert rows[:2] == [["label", "label.depth_2", "label.depth_1"], ["wren", "song", "bird"]]
        assert len(rows) == 5

    def test_levels_called_like_columns_of_other_forms_come_back(self, tmp_path):
        tree = hierarchy_from_groups([1, 2, 3], {"path": ["a", "b", "b"], "parent": ["c", "d", "d"], "child": ["e", "e", "e"]})
        write_hierarchy(tree, tmp_path / "a.csv")
        assert read_hierarchy(tmp_path / "a.csv") == tree

    def test_groups_are_numbered_as_they_come(self, tmp_path):
        tree = Hierarchy((1, 2), (Level("kind", ("b", "a"), (1, 0)),))
        write_hierarchy(tree, tmp_path / "a.csv")
        assert read_hierarchy(tmp_path / "a.csv").columns() == tree.columns()

    def test_a_file_is_replaced_whole_or_not_at_all(self, tmp_path, monkeypatch):
        write_hierarchy(BY_DEPTH, tmp_path / "a.csv")
        monkeypatch.setattr("os.replace", lambda *paths: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            write_hierarchy(BY_DEPTH.restricted(["wren", "cod"]), tmp_path / "a.csv")
        assert read_hierarchy(tmp_path / "a.csv") == BY_DEPTH
        assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
