"""Borrowed evaluation mode."""

import pytest
from torch import nn

from kinfold.modes import evaluating


def test_every_part_gets_its_own_mode_back_even_after_an_error():
    layers = nn.Sequential(nn.Dropout(), nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()))
    layers[1][0].eval()
    before = [part.training for part in layers.modules()]
    with pytest.raises(RuntimeError), evaluating(layers):
        assert not any(part.training for part in layers.modules())
        raise RuntimeError
    assert [part.training for part in layers.modules()] == before
    assert len(set(before)) == 2
