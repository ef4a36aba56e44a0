import pytest
import torch

from kinfold.core.similarity import SIMILARITIES, cosine, dot, negative_euclidean, negative_squared_euclidean


def test_the_table_names_each_function_by_its_own_name():
    assert all(function.__name__ == name for name, function in SIMILARITIES.items())


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e30])
def test_cosine_does_not_depend_on_the_length_of_a_vector(size):
    x, y = torch.randn(4, 8), torch.randn(5, 8)
    torch.testing.assert_close(cosine(size * x, y), cosine(x, y))


def test_cosine_with_a_zero_vector_is_zero_and_gives_it_no_gradient():
    x = torch.zeros(1, 4, requires_grad=True)
    sim = cosine(x, torch.randn(3, 4))
    assert (sim == 0).all()
    sim.sum().backward()
    assert x.grad is not None
    assert (x.grad == 0).all()


def test_equal_rows_are_exactly_zero_apart_whatever_the_number_of_rows():
    x = 10 * torch.randn(60, 128)
    assert (negative_euclidean(x, x.clone()).diagonal() == 0).all()
    assert torch.equal(negative_euclidean(x, x)[:3, :3], negative_euclidean(x[:3], x[:3]))


def test_squared_distance_of_unit_rows_is_two_cosines_below_two():
    x, y = torch.randn(4, 8, dtype=torch.float64), torch.randn(5, 8, dtype=torch.float64)
    unit = [row / row.norm(dim=1, keepdim=True) for row in (x, y)]
    torch.testing.assert_close(negative_squared_euclidean(*unit), 2 * cosine(x, y) - 2)


def test_dot_keeps_the_length_of_vectors():
    x, y = torch.randn(4, 8), torch.randn(5, 8)
    torch.testing.assert_close(dot(2 * x, 3 * y), 6 * dot(x, y))
