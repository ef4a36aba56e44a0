"""Trees as pictures: every name stands once, in the tree's order, marks follow the other grouping, sizes grow with the leaves."""

import re

import numpy as np
import pytest
from PIL import Image

from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.errors import DataError, ShapeError
from kinfold.reports.dendrogram import draw_dendrogram, draw_linkage
from kinfold.reports.palette import LOOKS

CLASSES = ["wren", "owl", "gull", "tit", "a $5 & $6 bird"]
BIRDS = hierarchy_from_groups(
    CLASSES, {"family": ["small", "night", "sea", "small", "sea"], "order": ["song", "hunt", "hunt", "song", "hunt"]}
)


@pytest.fixture
def texts(monkeypatch):
    """Write letters as text in SVG files, and return what reads them: (text, x, y) in the order of the file."""
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")

    def read(file):
        found = re.findall(r'<text [^>]* x="([-\d.]+)" y="([-\d.]+)"[^>]*>(.*?)</text>', file.read_text(encoding="utf-8"))
        return [(text.replace("&amp;", "&"), float(x), float(y)) for x, y, text in found]

    return read


def test_every_name_stands_in_the_picture_under_its_group(tmp_path, texts):
    file = tmp_path / "new" / "tree.svg"
    draw_dendrogram(BIRDS, file, counts=dict(zip(CLASSES, (3, 1, 2, 1, 1), strict=True)), title="Five birds")
    found = {text: (x, y) for text, x, y in texts(file)}
    assert {"Five birds", "order", "family", "class", "song (4)", "hunt (4)", "small (4)", "night (1)", "sea (3)"} < found.keys()
    leaves = ["wren (3)", "tit (1)", "owl (1)", "gull (2)", "a $5 & $6 bird (1)"]  # groups stay together
    assert [text for text in sorted(found, key=lambda text: found[text][1]) if text in leaves] == leaves
    assert found["order"][0] < found["family"][0] < found["class"][0]
    assert found["owl (1)"][1] < found["sea (3)"][1] < found["a $5 & $6 bird (1)"][1]
    assert found["wren (3)"][1] < found["song (4)"][1] < found["tit (1)"][1]


def test_marks_follow_another_grouping(tmp_path, texts):
    file = tmp_path / "tree.svg"
    draw_dendrogram(BIRDS, file, color_by={"wren": "grey", "owl": "grey", "gull": "white"}, color_name="plumage")
    names = [text for text, _, _ in texts(file)]
    assert {"plumage", "grey", "white"} < set(names)
    text = file.read_text(encoding="utf-8")
    marks = [len(re.findall(rf'<use [^>]*style="fill: {look.color}"', text)) for look in LOOKS[:3]]
    assert marks == [2 + 1, 1 + 1, 0]  # each once more in the legend


def test_large_hierarchies_end_at_their_groups(tmp_path, texts):
    n = 301
    tree = hierarchy_from_groups(list(range(n)), {"kind": [f"k{i % 7}" for i in range(n)], "all": [0] * n})
    draw_dendrogram(tree, tmp_path / "tree.svg", color_by={0: "x"})
    names = [text for text, _, _ in texts(tmp_path / "tree.svg")]
    assert [name for name in names if "(" in name] == [f"k{i} (43 classes)" for i in range(7)]
    assert "class" not in names
    with pytest.raises(DataError, match="has 301 groups"):
        draw_dendrogram(hierarchy_from_groups(list(range(n)), {"kind": list(range(n))}), tmp_path / "no.svg")
    assert not (tmp_path / "no.svg").exists()


def test_two_hundred_classes_have_room_for_their_names(tmp_path):
    tree = hierarchy_from_groups([f"class {i}" for i in range(200)], {"kind": [i // 10 for i in range(200)]})
    draw_dendrogram(tree, tmp_path / "tree.png")
    with Image.open(tmp_path / "tree.png") as image:
        assert image.height / 200 >= 24  # 7 pt at 150 dpi take 15


def test_the_full_dendrogram_joins_the_most_alike_first(tmp_path, texts):
    x = np.array([[1.0, 0.0, 0.0], [0.0, 5.0, 0.1], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [-1.0, -1.0, 1.0]])
    file = tmp_path / "tree.svg"
    draw_linkage(x, CLASSES, file, color_by=dict.fromkeys(CLASSES, "bird"), color_name="kind", title="Centres")
    order = [text for text, _, _ in sorted(texts(file), key=lambda found: found[2]) if text in CLASSES]
    place = {name: i for i, name in enumerate(order)}
    assert len(order) == 5
    assert abs(place["wren"] - place["gull"]) == 1
    assert abs(place["owl"] - place["tit"]) == 1
    assert place["a $5 & $6 bird"] in (0, 4)


@pytest.mark.parametrize(
    ("centres", "error", "message"),
    [
        (np.ones((4, 2)), ShapeError, r"shape \(4, 2\) for 5 names"),
        (np.array([[1.0, 0]] * 3 + [[0, 0]] + [[0, 1]]), DataError, "row 3 is zero"),
        (np.array([[1.0, 0]] * 4 + [[np.nan, 1]]), DataError, "row 4 is zero or not finite"),
    ],
)
def test_centres_without_a_direction_are_refused(tmp_path, centres, error, message):
    with pytest.raises(error, match=message):
        draw_linkage(centres, CLASSES, tmp_path / "x.png")


def test_equal_centres_can_be_drawn_and_one_alone_cannot(tmp_path):
    draw_linkage(np.ones((3, 2)), ["a", "b", "c"], tmp_path / "x.png")
    with pytest.raises(DataError, match="1 classes: a dendrogram of 2 to 300"):
        draw_linkage(np.ones((1, 2)), ["a"], tmp_path / "y.png")
