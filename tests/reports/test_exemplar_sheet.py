"""The picture of typical images of each group."""

import numpy as np
import pytest
from PIL import Image

from kinfold.errors import DataError
from kinfold.reports.exemplar_sheet import draw_exemplars

RED, BLUE = np.full((20, 20, 3), (250, 0, 0), np.uint8), np.full((20, 20, 3), (0, 0, 250), np.uint8)


def coloured(file, colour) -> np.ndarray:
    """Return where the picture has a colour."""
    return np.abs(np.asarray(Image.open(file).convert("RGB")).astype(int) - np.array(colour)).sum(axis=2) < 30


def test_each_group_has_a_row_with_its_images(tmp_path):
    file = tmp_path / "groups.png"
    draw_exemplars({"0 (a, b)": [(RED, "a"), (RED, "b")], 7: [(BLUE, "c")]}, file, title="groups")
    red, blue = coloured(file, (250, 0, 0)), coloured(file, (0, 0, 250))
    assert red.sum() == pytest.approx(2 * blue.sum(), rel=0.05) and blue.sum() > 5000
    assert np.flatnonzero(red.any(axis=1)).max() < np.flatnonzero(blue.any(axis=1)).min(), "one row below the other"
    assert np.flatnonzero(blue.any(axis=0)).min() == np.flatnonzero(red.any(axis=0)).min(), "rows begin at one edge"


def test_nothing_to_draw_is_an_error_and_leaves_no_file(tmp_path):
    with pytest.raises(DataError, match="no image to draw"):
        draw_exemplars({"0": []}, tmp_path / "groups.png")
    assert not list(tmp_path.iterdir())
