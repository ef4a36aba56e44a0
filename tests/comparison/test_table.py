"""A comparison as text: every number that is known is there, and what must be known to read it."""

import csv
import io
import json

from kinfold.comparison.compare import compare
from kinfold.comparison.table import columns_of, csv_text, lines_of, markdown, plain_rows, remarks_of

METRICS = ["recall_at_1"]
BASE = {0: [1, 0, 1, 0, 0, 0], 1: [1, 1, 1, 0, 0, 1]}


def rows_of(make_group):
    better = make_group("wide", {0: [1, 1, 1, 0, 1, 0], 1: [1] * 6}, model__dim=8, note="twice the size", failed={2: "no memory"})
    single = make_group("one", {1: [0] * 6}, model__dim=9, train__epochs=1)
    gone = make_group("gone", {}, failed={0: "bad loss"})
    return compare(make_group("base", BASE), [better, single, gone], metrics=METRICS)


def test_a_line_has_a_cell_for_each_column(make_group):
    rows = rows_of(make_group)
    lines = lines_of(rows, METRICS)
    assert {len(line) for line in lines} == {len(columns_of(METRICS))}
    base, wide, one, gone = lines
    assert base == ["base", "2", "50.0 ± 23.6", "", "", "1.0"]
    assert wide[:3] == ["wide", "2 of 3", "83.3 ± 23.6"] and wide[3].startswith("+33.3 [")
    assert one[2] == "0.0", "one seed has no deviation"
    assert gone == ["gone", "0 of 1", "failed", "–", "–", ""]


def test_remarks_say_what_failed_what_is_unfair_and_how_many_seeds_there_are(make_group):
    text = "\n".join(remarks_of(rows_of(make_group)))
    assert "wide: twice the size" in text
    assert "wide, seed 2 failed: no memory" in text and "gone, seed 0 failed: bad loss" in text
    assert "one differs besides: model.dim (64, here 9), train.epochs (4, here 1)" in text
    assert "one: the difference is over the 1 common seed(s) 1" in text
    assert "One seed: the intervals say" in text and "Fewer than five seeds" in text


def test_five_seeds_need_no_warning(make_group):
    values = {seed: BASE[0] for seed in range(5)}
    assert remarks_of(compare(make_group("base", values), [make_group("b", values, model__dim=8)], metrics=METRICS)) == []


def test_markdown_is_a_table_with_its_remarks(make_group):
    text = markdown(rows_of(make_group), METRICS, title="birds")
    lines = text.splitlines()
    assert lines[0] == "## birds"
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 4 and len({line.count("|") for line in table}) == 1
    assert "- wide: twice the size" in lines


def test_csv_has_a_line_for_each_row_and_metric_and_json_all_of_it(make_group):
    rows = rows_of(make_group)
    lines = list(csv.DictReader(io.StringIO(csv_text([("birds", rows)], METRICS))))
    assert [line["name"] for line in lines] == ["base", "wide", "one", "gone"]
    wide = next(line for line in lines if line["name"] == "wide")
    found = rows[1].differences["recall_at_1"]
    assert float(wide["difference"]) == found.mean and float(wide["class_high"]) == found.over_classes.high
    assert lines[0]["difference"] == "" and lines[3]["mean"] == ""
    values = json.loads(json.dumps(plain_rows(rows)))
    assert values[1]["differences"]["recall_at_1"]["over_queries"] == list(found.over_queries)
    assert values[3]["failed"] == {"0": "bad loss"}
