"""Hierarchies read from a run's log, against logs written by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.engine.run import Run
from kinfold.errors import DataError
from kinfold.evaluation.agreement import agreement
from kinfold.learned_groups import assignment_moves, groups_of_classes, learned_hierarchy, report_learned, snapshots

FIRST = [[0, 0, 2, 2, 3], [0, 0, 1, 1]]  # five classes in groups 0 to 3, of which 1 is empty
SECOND = [[0, 2, 2, 2, 3], [0, 0, 1, 0]]


def write_run(folder: Path, *parents: list[list[int]], config: dict | None = None) -> Run:
    """Write what training would leave of a run whose objective had these parents at the ends of its epochs."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.json").write_text("{}")
    (folder / "config.json").write_text(json.dumps(config or {"recipe": {}}))
    rows = [{"epoch": 0, "step": 1, "loss": 2.5}]
    rows += [{"epoch": i, "step": 10 * (i + 1), "snapshot": {"parent": parent}} for i, parent in enumerate(parents)]
    rows += [{"epoch": 9, "step": 99, "loss": None}]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Run(folder)


def hpl(update: str = "online", top: int = 2) -> dict:
    return {"objective_object": {"settings": {"update": update}, "tensors": {"levels.1.proxies": [top, 8]}}}


def test_the_last_snapshot_is_the_learned_hierarchy_without_its_empty_groups(tmp_path):
    tree = learned_hierarchy(write_run(tmp_path / "run", FIRST, SECOND))
    assert tree.classes == tuple(f"class {i}" for i in range(5))
    assert (tree.names, tree.sizes) == (("level_1", "level_2"), (3, 2))
    assert tree.members("level_1") == {
        "0 (class 0)": ("class 0",),
        "2 (class 1, class 2, +1)": ("class 1", "class 2", "class 3"),
        "3 (class 4)": ("class 4",),
    }
    assert tree.members("level_2") == {
        "0 (class 0, class 4)": ("class 0", "class 4"),
        "1 (class 1, class 2, +1)": ("class 1", "class 2", "class 3"),
    }


def test_classes_are_named_by_the_model_and_else_by_the_table(tmp_path, tiny_photos):
    run = write_run(tmp_path / "run", [[0, 0, 1, 1, 2, 2]], config={"data": {"root": str(tiny_photos)}})
    assert learned_hierarchy(run).classes == tuple(f"class {i}" for i in range(6))
    (tmp_path / "run" / "model").mkdir()
    (tmp_path / "run" / "model" / "labels.json").write_text(json.dumps({"classes": [3, 1, 4, 15, 9, 2]}))
    assert learned_hierarchy(run.folder).classes == (3, 1, 4, 15, 9, 2)


def test_groups_of_another_number_of_classes_are_refused(tmp_path, tiny_photos):
    run = write_run(tmp_path / "run", FIRST, config={"data": {"root": str(tiny_photos)}})
    with pytest.raises(DataError, match="groups 5 classes, but there are 6 training classes"):
        learned_hierarchy(run)


@pytest.mark.parametrize("rows", [[], [{"epoch": 0, "step": 1, "snapshot": {}}], [{"epoch": 0, "step": 1, "snapshot": None}]])
def test_a_run_without_groups_has_no_hierarchy(tmp_path, rows):
    run = write_run(tmp_path / "run")
    run.log_file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert snapshots(run) == [] and assignment_moves(run) == []
    with pytest.raises(DataError, match="has learned no hierarchy"):
        learned_hierarchy(run)


@pytest.mark.parametrize("parent", [[[0, 5], [0, 0]], [[0, 1], [0, "x"]], [[0, [1]], [0, 0]], [[0, None]]])
def test_a_broken_snapshot_is_named(tmp_path, parent):
    with pytest.raises(DataError, match="epoch 0: the snapshot's parents do not fit"):
        snapshots(write_run(tmp_path / "run", parent))


def test_moves_count_classes_and_empty_groups(tmp_path):
    run = write_run(tmp_path / "run", FIRST, SECOND, SECOND, config=hpl())
    rows = [(m.epoch, m.step, m.level, m.n_groups, m.n_empty, m.n_moved) for m in assignment_moves(run)]
    assert rows == [
        (0, 10, "level_1", 4, 1, None),
        (0, 10, "level_2", 2, 0, None),
        # Class 1 went from group 0 to 2, and with it from 0 to 1 above; class 4 stayed in group 3, which went from 1 to 0.
        (1, 20, "level_1", 4, 1, 1),
        (1, 20, "level_2", 2, 0, 2),
        (2, 30, "level_1", 4, 1, 0),
        (2, 30, "level_2", 2, 0, 0),
    ]


def test_the_coarsest_level_may_have_empty_groups_too(tmp_path):
    run = write_run(tmp_path / "run", [[0, 1, 1], [0, 0]], config=hpl(top=5))
    assert [(m.n_groups, m.n_empty) for m in assignment_moves(run)] == [(2, 0), (5, 4)]


def test_fixed_groups_never_move(tmp_path):
    moves = assignment_moves(write_run(tmp_path / "run", FIRST, FIRST, FIRST, config=hpl("fixed")))
    assert {m.n_moved for m in moves if m.epoch} == {0}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.permutations(range(5)), st.data())
def test_groups_that_were_clustered_anew_are_matched_before_they_are_counted(tmp_path_factory, code, renamed, data):
    folder = tmp_path_factory.mktemp("runs")
    run = write_run(folder / "renamed", [code], [[renamed[c] for c in code]], config=hpl("offline"))
    assert assignment_moves(run)[1].n_moved == 0, "another number is no move"
    other = data.draw(st.lists(st.integers(0, 4), min_size=len(code), max_size=len(code)))
    found = assignment_moves(write_run(folder / "other", [code], [other], config=hpl("offline")))[1].n_moved
    from itertools import permutations

    stay = max(sum(names[a] == b for a, b in zip(code, other, strict=True)) for names in permutations(range(5)))
    assert found == len(code) - stay


def table_of(levels: dict[str, list[str]]) -> kinfold.Table:
    classes = [f"class {i}" for i in range(5)]
    columns = {"path": [f"{name}/{i}" for name in [*classes, "unseen"] for i in range(2)]}
    columns["label"] = [name for name in [*classes, "unseen"] for _ in range(2)]
    columns["split"] = ["train"] * 10 + ["test"] * 2
    for name, groups in levels.items():
        columns[f"label.{name}"] = [group for group in [*groups, "far"] for _ in range(2)]
    return kinfold.read_table(columns)


def test_every_learned_level_is_compared_with_every_level_of_the_training_classes(tmp_path):
    table = table_of({"kind": ["a", "b", "b", "b", "a"], "size": ["s", "s", "t", "s", "t"]})
    rows = report_learned(write_run(tmp_path / "run", FIRST, SECOND), table, permutations=30)
    assert [(r.level, r.groups, r.other, r.other_groups) for r in rows] == [
        ("level_1", 3, "kind", 2),
        ("level_1", 3, "size", 2),
        ("level_2", 2, "kind", 2),
        ("level_2", 2, "size", 2),
    ]
    assert rows[2].agreement.ami == pytest.approx(1)
    assert rows[1].agreement == agreement([0, 2, 2, 2, 3], ["s", "s", "t", "s", "t"], permutations=30)


def test_there_is_nothing_to_report_without_groups_or_without_levels(tmp_path):
    assert report_learned(write_run(tmp_path / "none"), table_of({"kind": list("abbba")})) == []
    assert report_learned(write_run(tmp_path / "run", FIRST), table_of({})) == []


def test_groups_of_classes_follow_the_classes_asked_for():
    random = np.random.default_rng(0)
    label = random.permutation([f"c{i}" for i in range(6)] * 3).tolist()
    columns = {"parity": [int(name[1:]) % 2 for name in label], "third": [int(name[1:]) // 3 for name in label]}
    found = groups_of_classes(["c4", "c1"], label, columns)
    assert found == {"parity": (0, 1), "third": (1, 0)}
