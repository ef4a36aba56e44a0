"""Looks of categories in pictures: colours and marks that readers who do not tell red from green keep apart too."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kinfold.core.hierarchy import Name
from kinfold.reports.tree_text import class_title

MAX_CATEGORIES = 12
OTHER = "other"


class Look(NamedTuple):
    """How a category is drawn.

    Attributes:
        color: `#rrggbb`.
        marker: of matplotlib; never shared by two colours that could be taken for each other.
    """

    color: str
    marker: str


OTHER_LOOK = Look("#bbbbbb", ".")
# Dark and light, warm and cold in turn, on white paper; each shape comes twice, with colours that lie far apart.
LOOKS = (
    Look("#0072b2", "o"),
    Look("#e69f00", "s"),
    Look("#882255", "^"),
    Look("#44aa99", "D"),
    Look("#d55e00", "v"),
    Look("#332288", "P"),
    Look("#56b4e9", "X"),
    Look("#117733", "p"),
    Look("#ee99aa", "o"),
    Look("#7a5195", "s"),
    Look("#999933", "^"),
    Look("#222222", "D"),
)


def looks_of(categories: Iterable[Name]) -> dict[Name, Look]:
    """Return a look for each category, the most frequent first; with more than 12, the 11 largest get one and the rest are grey.

    Args:
        categories: one for each thing that is drawn; equal numbers keep the order of first appearance.

    Returns:
        Category → look; all categories are there, those beyond the largest 11 with `OTHER_LOOK`.

    Example:
        >>> found = looks_of(["owl", "gull", "owl"])
        >>> list(found), found["owl"].marker
        (['owl', 'gull'], 'o')
    """
    ordered = [name for name, _ in Counter(categories).most_common()]
    n_own = MAX_CATEGORIES if len(ordered) <= MAX_CATEGORIES else MAX_CATEGORIES - 1
    return {name: LOOKS[place] if place < n_own else OTHER_LOOK for place, name in enumerate(ordered)}


def legend_entries(looks: Mapping[Name, Look]) -> list[tuple[str, Look]]:
    """Return what a legend lists: each category with its look, and one line for all that share the grey one."""
    own = [(class_title(name), look) for name, look in looks.items() if look != OTHER_LOOK]
    n_other = len(looks) - len(own)
    return own + ([(f"{OTHER} ({n_other})", OTHER_LOOK)] if n_other else [])
