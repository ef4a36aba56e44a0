import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.checks.names import look_alikes, name_findings
from tests.checks.pictures import plain_table

NFD = unicodedata.normalize("NFD", "Möwe")


@pytest.mark.parametrize(
    "pair",
    [
        ("barn owl", "Barn Owl"),
        ("barn owl", "BARN OWL"),
        ("barn owl", "barn_owl"),
        ("barn owl", "barn  owl"),
        ("barn owl", "barn-owl"),
        ("barn owl", "barn – owl"),
        ("barn owl", "barn owl "),
        ("barn owl", " barn owl"),
        ("barn owl", "barn\xa0owl"),
        ("barn owl", "barn owl\u200b"),
        ("barn owl", "\ufeffbarn owl"),
        ("barn owl", "b\xadarn owl"),
        ("barn owl", "ｂａｒｎ ｏｗｌ"),
        ("Möwe", NFD),
        ("fish", "ﬁsh"),
        ("Straße", "STRASSE"),
        ("St. Bernard", "St Bernard"),
        ("Brandt's gull", "Brandt’s Gull"),
        ("Brandt's gull", "Brandts gull"),
        ("owl 1", "owl_1"),
        ("owl 1", "Owl  1"),
        ("1 2", "1_2"),
        ("a owl", "A Owl"),
        ("７", "7"),
        ("a", "a "),
        (7, "7"),
    ],
)
def test_names_that_a_person_takes_for_one_look_alike(pair):
    assert [set(names) for names in look_alikes(pair)] == [set(pair)]


@pytest.mark.parametrize(
    "pair",
    [
        ("Cat 1", "Cat 11"),
        ("Cat 1 1", "Cat 11"),
        ("1.5", "15"),
        ("1.5", "1-5"),
        ("1.5", "1 5"),
        ("-1", "1"),
        ("001", "1"),
        ("C", "C++"),
        ("C#", "C++"),
        ("a", "A"),
        ("Latin a", "Latin A"),
        ("ä", "a"),
        ("N", "ŉ"),
        ("N", "ʼN"),
        ("Υ", "ϒ"),
        ("ǆ", "ǅ"),
        ("-", "_"),
        (".", "..."),
        ("о", "o"),
        ("Brewer_Blackbird", "Brewer_Sparrow"),
        ("Audi S4 Sedan 2007", "Audi S4 Sedan 2012"),
        ("owls/wren", "owls wren"),
        (1, 11),
        (1, -1),
    ],
)
def test_names_that_differ_for_a_reason_do_not(pair):
    assert look_alikes(pair) == []


def test_more_than_two_names_make_one_set_and_repeats_count_once():
    assert look_alikes(["b", "Wren", "wren", "b", "wren ", "wren"]) == [("Wren", "wren", "wren ")]


@given(st.lists(st.integers(-(10**30), 10**30), max_size=30))
def test_whole_numbers_never_look_alike(names):
    assert look_alikes(names) == []


WORD = st.text(string.ascii_lowercase, min_size=2, max_size=6)


@given(st.lists(WORD, min_size=1, max_size=3), st.sampled_from([str.upper, str.title, "_".join, "  ".join]))
def test_a_name_looks_like_itself_written_otherwise(words, change):
    name = " ".join(words)
    other = change(words) if change.__name__ == "join" else change(name)
    assert bool(look_alikes([name, other])) == (name != other)


@given(st.sets(st.lists(WORD, min_size=1, max_size=3).map(" ".join), max_size=10))
def test_different_words_never_look_alike(names):
    assert look_alikes(sorted(names)) == []


@given(st.sets(st.characters(categories=["L", "S", "P"]).map(lambda sign: unicodedata.normalize("NFC", sign)), max_size=30))
def test_an_alphabet_has_no_look_alikes(signs):
    assert look_alikes(sorted(signs)) == []


def test_a_finding_writes_the_names_so_that_they_differ_and_counts_their_images():
    table = plain_table(["Möwe", NFD, NFD, "wren", "Möwe"], ["train", "train", "train", "train", "train"])
    (finding,) = name_findings(table)
    assert (finding.code, finding.severity, finding.rows) == ("look_alike_names", "warning", (0, 1, 2, 4))
    assert "'Mo\\u0308we' (2 images in train), 'Möwe' (2 images in train)" in finding.message


def test_a_name_in_train_and_its_like_in_test_is_an_error():
    (finding,) = name_findings(plain_table(["wren", "owl", "Wren"], ["train", "train", "test"]))
    assert (finding.severity, finding.rows) == ("error", (0, 2))
    assert "the class is no unseen one" in finding.message
    assert "'Wren' (1 image in test), 'wren' (1 image in train)" in finding.message


def test_both_names_in_both_splits_or_in_test_alone_is_a_warning():
    both = name_findings(plain_table(["wren", "wren", "Wren", "Wren"], ["train", "test", "train", "test"]))
    test = name_findings(plain_table(["wren", "Wren", "owl"], ["test", "test", "train"]))
    assert [finding.severity for finding in (*both, *test)] == ["warning", "warning"]


def test_groups_of_a_level_that_look_alike_are_a_note():
    table = plain_table(["a", "b", "c"], **{"label.family": ["Owls", "owls", "wrens"]})
    (finding,) = name_findings(table)
    assert (finding.code, finding.severity, finding.rows) == ("look_alike_groups", "note", (0, 1))
    assert "level `family`" in finding.message
