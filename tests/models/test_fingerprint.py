"""Fingerprints."""

import torch

from kinfold.models.fingerprint import fingerprint


def test_order_and_memory_layout_do_not_matter():
    weight = torch.randn(4, 3, 2, 2)
    rows, turned = {"a": weight, "b": torch.tensor(1)}, {"b": torch.tensor(1), "a": weight.to(memory_format=torch.channels_last)}
    assert not turned["a"].is_contiguous()
    assert fingerprint(rows, {"x": 1, "y": 2}) == fingerprint(turned, {"y": 2, "x": 1})


def test_every_change_shows():
    weight = torch.randn(4, 6)
    nearby = weight.clone()
    nearby[2, 3] = torch.nextafter(weight[2, 3], torch.tensor(9.0))
    prints = [
        fingerprint({"a": weight}, {"dim": 4}),
        fingerprint({"a": nearby}, {"dim": 4}),
        fingerprint({"a": weight.view(6, 4)}, {"dim": 4}),
        fingerprint({"b": weight}, {"dim": 4}),
        fingerprint({"a": weight.view(torch.int32)}, {"dim": 4}),
        fingerprint({"a": weight, "b": torch.empty(0)}, {"dim": 4}),
        fingerprint({"a": weight}, {"dim": 5}),
        fingerprint({"a": weight.bfloat16()}, {"dim": 4}),
    ]
    assert len(set(prints)) == len(prints)
    assert all(len(value) == 64 for value in prints)
