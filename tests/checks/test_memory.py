"""What a step takes, against what is known of it."""

import torch
from torch import nn

from kinfold.checks.memory import bytes_of_tensors, measured_memory

CPU = torch.device("cpu")


def test_kept_activations_are_counted_once_and_weights_not_at_all():
    weight = torch.ones(64, 32, requires_grad=True)
    x = torch.ones(100, 64)
    with measured_memory(CPU, [weight]) as memory:
        y = x @ weight  # keeps x, and the weight
        z = y.relu()  # keeps its output
        (z * z).sum().backward()  # keeps the same again, twice
    assert memory.saved == 4 * (100 * 64 + 100 * 32)


def test_a_network_keeps_what_its_layers_need():
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    x = torch.randn(10, 8)
    with measured_memory(CPU, net.parameters()) as memory:
        net(x).sum().backward()
    assert memory.saved == 4 * (10 * 8 + 10 * 16), "the input, and the output of tanh"


def test_gradients_are_the_same_while_measured():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(inplace=True), nn.Linear(16, 4))
    x = torch.randn(10, 8)
    net(x).square().sum().backward()
    plain = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    with measured_memory(CPU, net.parameters()):
        net(x).square().sum().backward()
    assert all(torch.equal(a, p.grad) for a, p in zip(plain, net.parameters(), strict=True))


def test_the_process_is_seen_to_grow():
    with measured_memory(CPU, []) as memory:
        large = torch.ones(300_000_000 // 4)
        large += 1
    if memory.rise is not None:  # where the system says so
        assert memory.rise > 200_000_000


def test_bytes_are_counted_by_type():
    assert (
        bytes_of_tensors([torch.zeros(3), torch.zeros(2, 2, dtype=torch.float16), torch.zeros(1, dtype=torch.int64)])
        == 12 + 8 + 8
    )
