import pytest
import torch

from kinfold.core.similarity import SIMILARITIES
from kinfold.errors import DataError, ShapeError
from kinfold.evaluation.exclusion import SameItem
from kinfold.evaluation.spaces import plain_space, space_of
from kinfold.evaluation.tiles import COLUMNS, ROWS, Rows, Sides, grid_of


def whole(grid):
    return torch.cat([torch.cat([block.tile(i).clone() for i in range(block.n_tiles)], dim=1) for block in grid.blocks()])


def sides(n, m, d=8, dtype=torch.float32):
    return Sides(torch.randn(n, d, dtype=dtype), torch.randn(m, d, dtype=dtype), torch.randperm(n), torch.randperm(m))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (ROWS + 3, COLUMNS + 5), (20, 2 * COLUMNS)])
@pytest.mark.parametrize("name", ["cosine", "dot"])
def test_tiles_put_together_are_the_similarity_matrix(n, m, name):
    both = sides(n, m)
    sim = whole(grid_of(both, space_of(name, both.query, both.gallery), None, 10**8))
    torch.testing.assert_close(sim, SIMILARITIES[name](both.query[both.query_order], both.gallery[both.gallery_order]))


@pytest.mark.parametrize("d", [3, 100, 512])
def test_values_are_the_same_bits_for_every_budget(d):
    both = sides(ROWS + 7, 2 * COLUMNS + 9, d)
    space = space_of("cosine", both.query, both.gallery)
    roomy, tight = (grid_of(both, space, None, memory) for memory in (10**9, 10**4))
    assert roomy.gallery._kept is not None
    assert tight.gallery._kept is None
    assert (whole(roomy) == whole(tight)).all()


def test_every_call_of_the_similarity_has_one_shape():
    shapes = set()

    def spy(x, y):
        shapes.add((x.shape, y.shape))
        return x @ y.T

    both = sides(2 * ROWS + 1, 2 * COLUMNS + 1)
    whole(grid_of(both, plain_space(spy, torch.float32), None, 10**8))
    assert shapes == {((ROWS, 8), (COLUMNS, 8))}


def test_a_value_does_not_depend_on_its_place_in_the_tile():
    x = torch.randn(COLUMNS, 128)
    both = Sides(x[:ROWS], x[7].repeat(COLUMNS, 1), torch.arange(ROWS), torch.arange(COLUMNS))
    sim = whole(grid_of(both, space_of("dot", both.query, both.gallery), None, 10**8))
    assert (sim == sim[:, :1]).all()


def test_kept_tiles_survive_later_ones_and_excluded_pairs_are_minus_infinity():
    both = sides(ROWS, 3 * COLUMNS)
    same = SameItem(torch.arange(ROWS) % 50, torch.arange(3 * COLUMNS) % 70)
    roomy = grid_of(both, space_of("dot", both.query, both.gallery), same, 10**9)
    mask = same(both.query_order, both.gallery_order)
    for block in roomy.blocks():
        kept = block.tile(1, keep=True)
        before = kept.clone()
        block.tile(0)
        block.tile(2, keep=True)
        assert (kept == before).all()
        assert block.tile(1) is kept
    assert ((whole(roomy) == -torch.inf) == mask).all()
    by_rule = grid_of(both, space_of("dot", both.query, both.gallery), same.__call__, 10**9)
    assert (whole(by_rule) == whole(roomy)).all()


def test_padding_repeats_a_row_so_that_a_similarity_never_sees_an_invented_one():
    rows = Rows(torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([2, 0, 1]), lambda x: x, height=2, keep=False)
    assert [rows.chunk(i).flatten().tolist() for i in range(rows.n_chunks)] == [[3, 1], [2, 2]]


@pytest.mark.parametrize(
    ("broken", "error"), [(lambda x, y: x.sum() + y.sum(), ShapeError), (lambda x, y: x @ y.T * torch.nan, DataError)]
)
def test_a_similarity_that_answers_nonsense_is_refused(broken, error):
    both = sides(3, 4)
    with pytest.raises(error, match="similarity returned"):
        whole(grid_of(both, plain_space(broken, torch.float32), None, 10**8))
