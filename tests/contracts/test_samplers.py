"""The contract of every batch sampler in the table."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from kinfold.data.samplers import SAMPLERS

N_ROWS = 60
LABEL = [row // 6 for row in range(N_ROWS)]
OWN = {
    "m_per_class": ((LABEL,), {"m": 2}),
    "hierarchical": ((LABEL, [c // 3 for c in LABEL]), {"m": 2, "classes_per_group": 2}),
    "random": ((N_ROWS,), {}),
}
"""What each sampler takes besides the settings that all have."""


@pytest.fixture(params=sorted(SAMPLERS))
def sampler(request):
    """A function that builds the sampler from the settings that all have."""

    def build(**settings):
        first, own = OWN[request.param]
        return SAMPLERS[request.param](*first, batch_size=8, **own, **settings)

    return build


def test_length_is_exact(sampler):
    assert len(list(sampler())) == len(sampler()) == N_ROWS // 8
    assert len(list(sampler(rank=1, world_size=3))) == len(sampler(rank=1, world_size=3)) == N_ROWS // 8 // 3


def test_batches_are_lists_of_distinct_rows(sampler):
    for rows in sampler():
        assert isinstance(rows, list)
        assert all(type(row) is int and 0 <= row < N_ROWS for row in rows)
        assert len(set(rows)) == len(rows) == 8


def test_seed_and_epoch_decide_everything(sampler):
    one, other = sampler(seed=5), sampler(seed=5)
    list(one.epoch(0))
    assert list(one.epoch(3)) == list(other.epoch(3))
    assert list(one.epoch(3)) != list(one.epoch(4))
    assert list(one.epoch(3)) != list(sampler(seed=6).epoch(3))


def test_the_global_generators_have_no_say(sampler):
    first = list(sampler())
    torch.manual_seed(99)
    assert list(sampler()) == first


def test_plain_iteration_follows_set_epoch(sampler):
    one = sampler()
    assert list(one) == list(one.epoch(0))
    one.set_epoch(2)
    assert list(one) == list(one) == list(one.epoch(2))


@pytest.mark.parametrize("start", range(N_ROWS // 8 + 1))
def test_an_epoch_begun_later_is_its_tail(sampler, start):
    assert list(sampler().epoch(1, start=start)) == list(sampler().epoch(1))[start:]
    assert (
        list(sampler(rank=1, world_size=2).epoch(1, start=min(start, 3)))
        == list(sampler(rank=1, world_size=2).epoch(1))[min(start, 3) :]
    )


@pytest.mark.parametrize("choice", [{"epoch": 0, "start": 8}, {"epoch": 0, "start": -1}, {"epoch": -1}])
def test_what_is_outside_the_epoch_is_refused(sampler, choice):
    with pytest.raises(ValueError, match=r"start = |epoch = "):
        sampler().epoch(**choice)


def test_processes_take_turns(sampler):
    whole = list(sampler().epoch(2))
    shares = [list(sampler(rank=rank, world_size=3).epoch(2)) for rank in range(3)]
    assert [share[turn] for turn in range(2) for share in shares] == whole[:6]


def test_rows_never_drawn_are_counted(sampler):
    shown = {row for rows in sampler().epoch(1) for row in rows}
    assert sampler().n_never_drawn(1) == N_ROWS - len(shown)


def test_a_data_loader_takes_it_under_spawn(sampler):
    dataset = TensorDataset(torch.arange(N_ROWS))
    loader = DataLoader(dataset, batch_sampler=sampler(), num_workers=1, multiprocessing_context="spawn")
    assert [batch.tolist() for (batch,) in loader] == list(sampler())
