import pytest
import torch

from kinfold.core.proxies import initial_proxies


def test_proxies_start_as_in_the_released_code_of_proxy_anchor():
    torch.manual_seed(3)
    ours = initial_proxies(50, 16)
    torch.manual_seed(3)
    released = torch.nn.init.kaiming_normal_(torch.empty(50, 16), mode="fan_out")
    torch.testing.assert_close(ours, released)


@pytest.mark.parametrize("n_classes", [8, 800])
def test_the_spread_of_proxies_depends_on_the_number_of_classes_only(n_classes):
    proxies = initial_proxies(n_classes, 20_000 // n_classes, generator=torch.Generator().manual_seed(0))
    assert proxies.std().item() == pytest.approx((2 / n_classes) ** 0.5, rel=0.03)


def test_a_seeded_draw_repeats_and_leaves_the_global_state_alone():
    state = torch.get_rng_state()
    first, second = (initial_proxies(4, 3, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)
