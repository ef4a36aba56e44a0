from dataclasses import replace

from kinfold.checks.levels import level_findings
from tests.checks.pictures import plain_table

LABEL = ["a", "a", "b", "c", "d"]


def found(**levels) -> list[tuple]:
    table = plain_table(LABEL, **{f"label.{name}": values for name, values in levels.items()})
    return [(finding.code, finding.severity, finding.rows) for finding in level_findings(table)]


def test_levels_that_nest_give_no_finding():
    assert found(fine=[1, 1, 1, 2, 3], coarse=[1, 1, 1, 1, 2]) == []


def test_levels_that_cross_are_noted():
    assert found(one=[1, 1, 2, 1, 2], other=[1, 1, 1, 2, 2]) == [("crossing_levels", "note", ())]


def test_levels_that_say_nothing_are_noted():
    assert found(same=[4, 4, 3, 2, 1], all=[1] * 5) == [("idle_level", "note", ())] * 2


def test_a_class_in_two_groups_is_an_error():
    table = replace(plain_table(LABEL), levels={"kind": ("x", "y", "x", "x", "y")})
    (finding,) = level_findings(table)
    assert (finding.code, finding.severity, finding.rows) == ("two_groups", "error", (0, 1))
    assert finding.message == "1 class lies in several groups of level `kind`, as 'a' does: 'x', 'y'"


def test_as_many_groups_as_classes_need_not_be_the_classes():
    for label, kind in ((["a", "a", "b"], ("x", "y", "x")), (["a", "a"], ("x", "y"))):
        table = replace(plain_table(label), levels={"kind": kind})
        assert [finding.code for finding in level_findings(table)] == ["two_groups"]
