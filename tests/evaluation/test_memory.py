import pytest

from kinfold.errors import ConfigError
from kinfold.evaluation.memory import bytes_of


@pytest.mark.parametrize(
    ("memory", "size"),
    [("512MB", 512_000_000), ("2 gb", 2_000_000_000), ("1.5GiB", 1_610_612_736), (1_000_000, 1_000_000), ("4000000", 4_000_000)],
)
def test_a_budget_is_read_in_bytes(memory, size):
    assert bytes_of(memory) == size


@pytest.mark.parametrize("memory", ["", "lots", "512 apples", "-1GB", "1e9", "999KB", 10, 0, -5, True, "MB"])
def test_nonsense_is_refused_with_an_example(memory):
    with pytest.raises(ConfigError, match="512MB"):
        bytes_of(memory)
