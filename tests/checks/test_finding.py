import json

import pytest

from kinfold.checks.finding import SEVERITIES, Finding, in_order, places
from kinfold.errors import ConfigError, ShapeError
from tests.checks.pictures import plain_table


def test_a_finding_becomes_plain_json():
    finding = Finding("two_labels", "error", "equal", "keep one", rows=(3, 8), paths=("a", "b"))
    expected = {
        "code": "two_labels",
        "severity": "error",
        "message": "equal",
        "remedy": "keep one",
        "rows": [3, 8],
        "paths": ["a", "b"],
    }
    assert json.loads(json.dumps(finding.to_dict())) == expected == finding.to_dict()


def test_an_unknown_severity_and_rows_without_paths_are_refused():
    with pytest.raises(ConfigError, match="'fatal' is not known: it must be one of error, warning, note"):
        Finding("x", "fatal", "", "")
    with pytest.raises(ShapeError, match="2 rows and 1 paths in `x`"):
        Finding("x", "note", "", "", rows=(1, 2), paths=("a",))


def test_places_are_item_numbers_of_the_table_as_it_was_read():
    part = plain_table(["a", "b", "c", "d"]).subset([3, 1])
    assert places(part, [0]) == {"rows": (3,), "paths": ("3.png",)}
    json.dumps(places(part, [0, 1]))


def test_findings_are_ordered_by_severity_and_keep_their_order_otherwise():
    findings = [Finding(f"{number}", severity, "", "") for number, severity in enumerate(["note", "error", "warning", "error"])]
    assert [finding.code for finding in in_order(findings)] == ["1", "3", "2", "0"]
    assert SEVERITIES == ("error", "warning", "note")
