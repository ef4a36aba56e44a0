"""Heads."""

import math

import torch

from kinfold.models.heads import LinearHead


def test_weights_start_kaiming_normal_by_outputs_and_the_bias_at_zero():
    head = LinearHead(2000, 50)
    assert math.isclose(head.linear.weight.std().item(), math.sqrt(2 / 50), rel_tol=0.02)
    assert not head.linear.bias.any()


def test_the_head_is_a_matrix_product():
    head = LinearHead(4, 3)
    feature = torch.rand(2, 4)
    torch.testing.assert_close(head(feature), feature @ head.linear.weight.T)


def test_layer_norm_has_no_parameters_and_removes_the_scale_of_a_row():
    head = LinearHead(8, 3, layer_norm=True)
    feature = torch.randn(2, 8)
    assert len(list(head.parameters())) == 2
    torch.testing.assert_close(head(feature), head(feature * 100 + 7), atol=1e-3, rtol=1e-3)


def test_the_bias_can_be_left_out():
    assert [name for name, _ in LinearHead(4, 3, bias=False).named_parameters()] == ["linear.weight"]
