"""The generator does what it is for: on Gaussians on a sphere its classes are themselves, new, and as wide as real ones."""

import runpy
from pathlib import Path

import pytest

CHECK = runpy.run_path(str(Path(__file__).parents[2] / "experiments" / "l2a_nc" / "self_check.py"))["check"]


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["wide", "narrow"])
def test_novel_classes_on_a_sphere(spread):
    found = CHECK("normalized_softmax", "gauss_kl", spread)
    assert found["own_similarity"] >= 0.65
    assert found["novel_to_real_max"] < found["novel_to_real_max_of_proxy_synthesis"]
    assert found["mean_apart"] <= 0.1
    assert abs(found["variance_ratio"] - 1) <= 0.1
    assert found["within_min"] >= 0.1
    assert found["within_max"] <= 10.0
