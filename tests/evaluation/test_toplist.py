import torch
from hypothesis import given
from hypothesis import strategies as st

from kinfold.evaluation.toplist import LargestValues


@given(st.integers(1, 9), st.integers(1, 60), st.integers(4, 30), st.integers(0, 2**30))
def test_the_largest_values_do_not_depend_on_the_buffer(k, n_columns, room, seed):
    sim = torch.randint(0, 20, (3, n_columns), generator=torch.Generator().manual_seed(seed)).float()
    largest = LargestValues(k, sim, shape=(3, room))
    for part in sim.split(4, dim=1):
        largest.add(part)
    wanted = sim.sort(dim=1, descending=True).values[:, :k]
    assert (largest.result().sort(dim=1, descending=True).values == wanted).all()
