"""Times and sizes: every number, near every change of unit, reads back as itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.checks.units import as_size, as_time

SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400}
BYTES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def read(text, units):
    words = text.split()
    return sum(float(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True))


@given(st.floats(0.001, 1e7))
def test_a_time_is_told_to_two_digits_at_least(seconds):
    assert read(as_time(seconds), SECONDS) == pytest.approx(seconds, rel=0.05, abs=0.001)


@given(st.floats(1, 1e14))
def test_a_size_is_told_to_two_digits_at_least(n_bytes):
    assert read(as_size(n_bytes), BYTES) == pytest.approx(n_bytes, rel=0.05, abs=0.5)


@pytest.mark.parametrize(
    "seconds, told",
    [(0, "0 ms"), (0.9996, "1.0 s"), (59.94, "59.9 s"), (59.97, "1 min"), (3599.7, "1 h"), (86399, "1 d"), (86400 * 3, "3 d")],
)
def test_no_unit_is_filled_to_its_brim(seconds, told):
    assert as_time(seconds) == told


@pytest.mark.parametrize("n_bytes, told", [(0, "0 B"), (999, "999 B"), (999_600, "1.0 MB"), (9_940, "9.9 kB"), (9_960, "10 kB")])
def test_sizes_change_their_unit_by_the_thousand(n_bytes, told):
    assert as_size(n_bytes) == told
