import pytest
import torch

from kinfold.core.similarity import SIMILARITIES
from kinfold.errors import ConfigError, DataError
from kinfold.evaluation.spaces import function_of, space_of


def by_space(name, x, y):
    space = space_of(name, x, y)
    query, gallery = space.query(x), space.gallery(y)
    return query @ gallery.T if space.sim is None else space.sim(query, gallery)


@pytest.mark.parametrize("name", sorted(SIMILARITIES))
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_a_space_ranks_as_its_similarity_does(name, dtype):
    x, y = torch.randn(20, 5).to(dtype), torch.randn(50, 5).to(dtype)
    exact = SIMILARITIES[name](x.double(), y.double())
    assert (by_space(name, x, y).argsort(dim=1) == exact.argsort(dim=1)).all()


def test_euclidean_ranks_survive_a_large_offset():
    x = torch.tensor([[0.0], [1.0], [3.0], [1000.0], [1001.0]]) + 4096
    sim = by_space("negative_euclidean", x, x)
    assert sim.argsort(dim=1, descending=True).tolist()[0] == [0, 1, 2, 3, 4]
    assert sim.argsort(dim=1, descending=True).tolist()[4] == [4, 3, 2, 1, 0]


def test_cosine_holds_for_huge_tiny_and_zero_rows():
    x = torch.tensor([[1e30, 1e30], [1e-30, 0.0], [0.0, 0.0], [3e38, -3e38]])
    sim = by_space("cosine", x, torch.tensor([[1.0, 0.0]])).flatten()
    torch.testing.assert_close(sim, torch.tensor([0.5**0.5, 1.0, 0.0, 0.5**0.5]))


def test_products_that_overflow_are_refused_in_words():
    x = torch.full((2, 3), 1e20)
    with pytest.raises(DataError, match="overflow"):
        space_of("dot", x, x)
    assert by_space("dot", x.double(), x).isfinite().all()


def test_a_function_from_the_table_is_known_by_identity_and_a_misspelt_name_gets_a_hint():
    x = torch.randn(2, 3)
    assert space_of(SIMILARITIES["cosine"], x, x).sim is None
    with pytest.raises(ConfigError, match="did you mean `cosine`"):
        function_of("cosin")
