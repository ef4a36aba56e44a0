import pytest
import torch

from kinfold.core.similarity import SIMILARITIES
from kinfold.evaluation.pair_space import pair_space


def values(name, x, y):
    space, step = pair_space(SIMILARITIES[name], x)
    query, gallery = space.query(x), space.gallery(y)
    return (query @ gallery.T if space.sim is None else space.sim(query, gallery)), step


@pytest.mark.parametrize("name", sorted(SIMILARITIES))
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_values_are_those_of_the_similarity_itself(name, dtype):
    x, y = torch.randn(20, 5).to(dtype), torch.randn(50, 5).to(dtype)
    found, _ = values(name, x, y)
    exact = SIMILARITIES[name](x.double(), y.double())
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


@pytest.mark.parametrize(("dtype", "grid"), [(torch.float32, 2.0**-19), (torch.float64, 2.0**-44)])
@pytest.mark.parametrize("d", [3, 128, 300, 2048])
def test_cosines_lie_on_a_grid_between_minus_one_and_one_that_hides_their_rounding(dtype, grid, d):
    x = torch.randn(200, d, dtype=dtype)
    found, step = values("cosine", x, torch.cat([x * 7, -x * 0.3]))
    assert step == grid
    assert torch.equal((found / step).round() * step, found)
    assert (found.diagonal() == 1).all() and (found[:, 200:].diagonal() == -1).all()
    unit = torch.nn.functional.normalize(x.double())
    assert (found[:, :200].double() - unit @ unit.T).abs().max() <= step


def test_a_product_that_rounding_carried_out_of_range_comes_back():
    space, _ = pair_space(SIMILARITIES["cosine"], torch.ones(1, 1))
    assert space.sim(torch.tensor([[1.01]]), torch.tensor([[1.0], [-1.0]])).tolist() == [[1.0, -1.0]]


def test_other_similarities_are_left_as_computed():
    for name in SIMILARITIES.keys() - {"cosine"}:
        assert values(name, torch.randn(3, 2), torch.randn(3, 2))[1] is None
