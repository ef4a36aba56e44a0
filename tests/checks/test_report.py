import json

from kinfold.checks.finding import Finding
from kinfold.checks.report import as_record, as_text, summary


def about(severity: str, code: str, n: int = 0) -> Finding:
    return Finding(code, severity, f"{code} found", f"mend {code}", tuple(range(n)), tuple(f"{row}.png" for row in range(n)))


def test_people_read_errors_first_with_five_rows_and_what_to_do():
    text = as_text([about("note", "open_set"), about("error", "two_labels", 7)], title="birds")
    assert text.splitlines() == [
        "error  two_labels: two_labels found",
        "       row 0: 0.png",
        "       row 1: 1.png",
        "       row 2: 2.png",
        "       row 3: 3.png",
        "       row 4: 4.png",
        "       and 2 more rows",
        "       → mend two_labels",
        "",
        "note  open_set: open_set found",
        "      → mend open_set",
        "",
        "birds: 1 error, 0 warnings, 1 note",
    ]


def test_many_findings_of_a_kind_are_cut_short_but_counted():
    text = as_text([about("warning", "duplicate", 2)] * 1200 + [about("warning", "mixed_set")], title="birds")
    assert text.count("duplicate found") == 5
    assert "warning  duplicate: 1,195 more of this kind (--json lists all)" in text
    assert "mixed_set found" in text
    assert text.endswith("birds: 0 errors, 1,201 warnings, 0 notes")


def test_that_nothing_was_found_is_said():
    assert as_text([], title="birds") == "birds: nothing found"
    assert summary([]) == "nothing found"


def test_programs_read_everything():
    findings = [about("error", "two_labels", 700), about("note", "open_set")]
    record = json.loads(json.dumps(as_record(findings, target="birds")))
    assert (record["target"], record["n_errors"], record["n_warnings"], record["n_notes"]) == ("birds", 1, 0, 1)
    assert record["findings"] == [finding.to_dict() for finding in findings]
    assert len(record["findings"][0]["paths"]) == 700
