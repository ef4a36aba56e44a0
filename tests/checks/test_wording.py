import unicodedata

import pytest

from kinfold.checks.wording import counted, listed, shown


@pytest.mark.parametrize(
    "pair", [("Möwe", unicodedata.normalize("NFD", "Möwe")), ("owl", "owl\u200b"), ("owl", "\uff4fwl"), ("a b", "a\xa0b")]
)
def test_names_that_look_alike_are_not_written_alike(pair):
    one, other = (shown(name) for name in pair)
    assert one != other
    assert (one.isascii() or one == "'Möwe'") and other.isascii()


def test_lists_say_how_many_are_left_out():
    assert listed([1, "b", 3]) == "1, 'b', 3"
    assert listed(list(range(7)), limit=5) == "0, 1, 2, 3, 4 and 2 more"


def test_nouns_follow_their_number():
    assert [counted(n, "query", "queries") for n in (0, 1, 1500)] == ["0 queries", "1 query", "1,500 queries"]
