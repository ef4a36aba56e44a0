import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.evaluation.ties import group_openers, tie_starts, tie_tolerance


def starts_by_loop(row, tolerance):
    found, opener = [], None
    for value in row:
        opens = value > -torch.inf and (opener is None or value < opener - tolerance)
        opener = value if opens else opener
        found.append(bool(opens))
    return found


@given(st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=5), st.integers(0, 6))
def test_groups_open_where_a_loop_opens_them(rows, tolerance):
    width = max(1, *map(len, rows))
    sim = torch.full((len(rows), width), -torch.inf)
    for i, row in enumerate(rows):
        sim[i, : len(row)] = torch.tensor(sorted(row, reverse=True), dtype=torch.float32)
    start = tie_starts(sim, torch.full((len(rows),), float(tolerance)))
    assert start.tolist() == [starts_by_loop(row, tolerance) for row in sim.tolist()]
    opener, group, size = group_openers(sim, start)
    for i, row in enumerate(rows):
        assert int(size[i].sum()) == len(row)
        for j in range(len(row)):
            assert opener[i, group[i, j]] - tolerance <= sim[i, j] <= opener[i, group[i, j]]


def test_a_slope_of_small_steps_is_not_one_tie():
    sim = torch.tensor([[1.0, 0.9, 0.8, 0.7, 0.6]])
    assert tie_starts(sim, torch.tensor([0.15])).tolist() == [[True, False, True, False, True]]


def test_the_tolerance_is_four_epsilons():
    sim = torch.tensor([[8.0, -16.0, -torch.inf], [-torch.inf] * 3])
    eps = torch.finfo(torch.float32).eps
    assert tie_tolerance(sim, bounded=False).tolist() == [64 * eps, 0]
    assert tie_tolerance(sim, bounded=True).tolist() == [4 * eps, 4 * eps]
