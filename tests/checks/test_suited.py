"""Whether table, model and objective go together: the same that `fit` refuses."""

from dataclasses import replace

import pytest

import kinfold
from kinfold.checks.suited import suited_findings
from kinfold.losses import proxy_anchor
from tests.checks.tiny import codes, embedder, pairwise, proxies, recipe, the


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


def test_what_goes_together_has_no_finding(table):
    assert suited_findings(table, embedder(), proxies(table), recipe()) == []
    assert suited_findings(table, embedder(), pairwise(), recipe()) == []


def test_an_objective_for_other_sizes_does_not_fit(table):
    found = suited_findings(table, embedder(), kinfold.Proxies(proxy_anchor, 5, 8), recipe())
    assert codes(found, "error") == ["does_not_fit"] * 2
    assert "5 classes, the training split has 6" in found[0].message and "dim=16" in found[1].remedy


def test_one_class_is_too_few(table):
    one = table.subset([row for row, label in enumerate(table.label) if label == "class 0"])
    assert codes(suited_findings(one, embedder(), proxies(one), recipe())) == ["too_few_classes"]


def test_shared_classes_must_be_allowed(table, tmp_path):
    mixed = replace(table, split=tuple("test" if row % 8 == 0 else "train" for row in range(len(table))))
    finding = the(suited_findings(mixed, embedder(), proxies(mixed), recipe()), "shared_classes")
    assert "allow_shared_classes = true" in finding.remedy
    with pytest.raises(kinfold.DataError):
        kinfold.fit(mixed, embedder(), proxies(mixed), run=tmp_path / "run", recipe=recipe())
    assert suited_findings(mixed, embedder(), proxies(mixed), recipe(allow_shared_classes=True)) == []


def test_a_permission_that_nothing_needs_is_idle(table):
    assert codes(suited_findings(table, embedder(), proxies(table), recipe(allow_shared_classes=True))) == ["idle_setting"]
