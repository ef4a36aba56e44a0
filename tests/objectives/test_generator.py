"""The conditional generator: its formula in loops, where the class enters, its statistics, and how it starts."""

import math

import pytest
import torch

from kinfold.errors import ConfigError, ShapeError
from kinfold.objectives.generator import ConditionalBatchNorm, ConditionalGenerator


def drawn(n, seed=0, size=16):
    return torch.randn(n, size, generator=torch.Generator().manual_seed(seed))


def rows_times(rows, layer):
    weight, bias = layer.weight.tolist(), layer.bias.tolist()
    return [[sum(a * b for a, b in zip(row, w, strict=True)) + c for w, c in zip(weight, bias, strict=True)] for row in rows]


def conditional_norm(rows, label, norm):
    """γ[y] (h − mean) / sqrt(variance + ε) + β[y] over the whole batch."""
    gamma, beta = norm.gamma.tolist(), norm.beta.tolist()
    n, found = len(rows), [list(row) for row in rows]
    for k in range(len(rows[0])):
        column = [row[k] for row in rows]
        mean = sum(column) / n
        variance = sum((value - mean) ** 2 for value in column) / n
        for i, y in enumerate(label):
            found[i][k] = gamma[y][k] * (column[i] - mean) / math.sqrt(variance + 1e-5) + beta[y][k]
    return found


def test_it_is_the_papers_network_row_by_row():
    generator = ConditionalGenerator(3, 5, noise_dim=4, hidden_dim=6, seed=2)
    noise, label = drawn(7, size=4), [0, 1, 2, 2, 1, 0, 1]
    rows = noise.tolist()
    for layer, norm in zip(generator.layers, generator.norms, strict=True):
        rows = [[max(0.0, value) for value in row] for row in conditional_norm(rows_times(rows, layer), label, norm)]
    rows = rows_times(rows, generator.out)
    expected = [[value / math.sqrt(sum(v * v for v in row)) for value in row] for row in rows]
    torch.testing.assert_close(generator(noise, torch.tensor(label)), torch.tensor(expected), rtol=1e-4, atol=1e-5)


def test_it_holds_as_many_numbers_as_the_paper_says():
    generator = ConditionalGenerator(200, 512)
    assert sum(p.numel() for layer in (*generator.layers, generator.out) for p in layer.parameters()) == 101_248
    assert sum(p.numel() for p in generator.norms.parameters()) == 153_600


def test_the_class_enters_through_normalisation_alone():
    generator, noise = ConditionalGenerator(4, 8).eval(), drawn(1).repeat(4, 1)
    assert len({tuple(row) for row in generator(noise, torch.arange(4)).tolist()}) == 4
    for norm in generator.norms:
        torch.nn.init.ones_(norm.gamma)
        torch.nn.init.zeros_(norm.beta)
    assert len({tuple(row) for row in generator(noise, torch.arange(4)).tolist()}) == 1


def test_rows_of_the_tables_start_apart_around_one_and_zero():
    norm = ConditionalBatchNorm(300, 40)
    assert float(norm.gamma.detach().mean()) == pytest.approx(1.0, abs=0.001)
    assert float(norm.beta.detach().mean()) == pytest.approx(0.0, abs=0.001)
    assert float(norm.gamma.detach().std()) == pytest.approx(0.02, rel=0.05)
    assert float(norm.beta.detach().std()) == pytest.approx(0.02, rel=0.05)


def test_in_evaluation_a_row_does_not_depend_on_the_others():
    generator = ConditionalGenerator(4, 8)
    for seed in range(50):
        generator(drawn(32, seed), torch.arange(32) % 4)
    generator.eval()
    noise, label = drawn(6), torch.arange(6) % 4
    together = generator(noise, label)
    alone = torch.cat([generator(noise[i : i + 1], label[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(together, alone)
    generator.train()
    assert not torch.allclose(generator(noise, label), together)


def test_vectors_have_length_one():
    norm = ConditionalGenerator(4, 8)(drawn(6), torch.arange(6) % 4).norm(dim=1)
    torch.testing.assert_close(norm, torch.ones(6))


def test_the_seed_alone_decides_the_start_and_torchs_generator_stays():
    before = torch.get_rng_state()
    one, same, other = (ConditionalGenerator(4, 8, seed=seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(one.values(), same.values(), strict=True))
    assert not torch.equal(one["out.weight"], other["out.weight"])


def test_a_single_row_in_training_is_one_clear_error():
    generator = ConditionalGenerator(4, 8)
    with pytest.raises(ShapeError, match="got 1 row in training mode: batch normalisation needs at least 2"):
        generator(drawn(1), torch.tensor([0]))
    assert generator.eval()(drawn(1), torch.tensor([0])).shape == (1, 8)


def test_noise_of_another_shape_is_one_clear_error():
    with pytest.raises(ShapeError, match=r"noise is \(3, 5\) for 3 labels: it must be \(3, 16\)"):
        ConditionalGenerator(4, 8)(drawn(3, size=5), torch.tensor([0, 1, 2]))


def test_sizes_below_one_are_refused():
    with pytest.raises(ConfigError, match="hidden_dim = 0: each must be at least 1"):
        ConditionalGenerator(4, 8, hidden_dim=0)
