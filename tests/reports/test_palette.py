"""Looks of categories: told apart in colour, in print and by colour-blind readers."""

from itertools import combinations

import numpy as np

from kinfold.reports.palette import LOOKS, MAX_CATEGORIES, OTHER_LOOK, legend_entries, looks_of

# Full colour blindness of two kinds, on linear RGB: Machado, Oliveira and Fernandes, IEEE TVCG 2009, table of severity 1.
BLIND = {
    "none": np.eye(3),
    "deuteranopia": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
    "protanopia": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
}


def lab(color: str, kind: str) -> np.ndarray:
    """Return CIE L*a*b* of a colour as a reader of some kind sees it."""
    value = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    seen = (BLIND[kind] @ linear).clip(0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_no_two_categories_share_a_mark_unless_their_colours_lie_far_apart_for_everybody():
    for one, other in combinations(LOOKS, 2):
        if one.marker == other.marker:
            for kind in BLIND:
                distance = np.linalg.norm(lab(one.color, kind) - lab(other.color, kind))
                assert distance > 25, f"{one} and {other} are alike with {kind}: {distance:.0f}"


def test_colours_differ_for_those_who_see_them_and_stand_out_from_paper_and_grey():
    for one, other in combinations([look.color for look in LOOKS] + [OTHER_LOOK.color, "#ffffff"], 2):
        if {one, other} != {OTHER_LOOK.color, "#ffffff"}:
            assert np.linalg.norm(lab(one, "none") - lab(other, "none")) > 15, f"{one} and {other}"


def test_twelve_categories_have_their_own_look_of_more_the_largest_eleven():
    twelve = [name for name in range(12) for _ in range(20 - name)]
    assert list(looks_of(twelve).values()) == list(LOOKS)
    assert len(LOOKS) == MAX_CATEGORIES
    more = looks_of([*twelve, "rare"])
    assert [more[name] for name in (0, 10, 11, "rare")] == [LOOKS[0], LOOKS[10], OTHER_LOOK, OTHER_LOOK]
    assert [text for text, _ in legend_entries(more)][-2:] == ["10", "other (2)"]
