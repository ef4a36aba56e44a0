import numpy as np
import pytest

from kinfold.errors import ConfigError
from kinfold.evaluation.cutoffs import cutoff, cutoffs


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "1", None, float("nan")])
def test_a_k_that_is_no_integer_of_at_least_one_is_refused(k):
    with pytest.raises(ConfigError, match="integer of at least 1"):
        cutoff(k)
    with pytest.raises(ConfigError, match="integer of at least 1"):
        cutoffs((1, k))


def test_several_k_keep_their_order_and_lose_repetitions():
    assert cutoffs([10, 1, np.int64(10), 10**12]) == (10, 1, 10**12)
    assert cutoffs(3) == (3,)
