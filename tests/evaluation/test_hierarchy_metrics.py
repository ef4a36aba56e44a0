"""Recall by level, heights, hierarchical precision and severity, against their definitions over every order of ties."""

from fractions import Fraction
from itertools import combinations
from math import isnan

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.errors import ConfigError, DataError
from kinfold.evaluation.evaluate import score
from kinfold.evaluation.hierarchy_metrics import score_hierarchy
from tests.evaluation.ranking_oracle import orders

CLASSES = ["oak", "elm", "pine", "fly", "bee", "cod"]
GROUPS = {"family": ["broad", "broad", "needle", "insect", "insect", "fish"], "kingdom": ["plant"] * 3 + ["animal"] * 3}
TREE = hierarchy_from_groups(CLASSES, GROUPS)
PATH = {name: (name, GROUPS["family"][i], GROUPS["kingdom"][i], "root") for i, name in enumerate(CLASSES)}


def height(a, b):
    """Return the first place where two paths to the root meet."""
    return next(i for i, (one, other) in enumerate(zip(PATH[a], PATH[b], strict=True)) if one == other)


def mean(values):
    values = list(values)
    return sum(values, Fraction(0)) / len(values)


def definition(sims, label, labels, k):
    """Return recall by level, mean height, hierarchical precision and (height, mistake) of the nearest: means over all orders."""
    heights, k = [height(label, other) for other in labels], min(k, len(labels))
    every = [[heights[j] for j in order] for order in orders(sims)]
    alike = [3 - h for h in heights]
    best = max(sum(chosen) for chosen in combinations(alike, k))
    return {
        "recall": [
            mean(Fraction(any(h <= level for h in hs[:k])) for hs in every) if min(heights) <= level else None
            for level in range(3)
        ],
        "height": mean(Fraction(sum(hs[:k]), k) for hs in every),
        "precision": mean(Fraction(sum(3 - h for h in hs[:k]), best) for hs in every) if best else None,
        "nearest": mean(Fraction(hs[0]) for hs in every),
        "mistake": mean(Fraction(hs[0] > 0) for hs in every),
    }


@given(
    st.integers(2, 6),
    st.integers(1, 7),
    st.sampled_from(["self", "items", "gallery", "gallery and items"]),
    st.integers(0, 2**30),
)
@settings(max_examples=60, deadline=None)
def test_every_number_equals_its_definition(n, k, sides, seed):
    generator = torch.Generator().manual_seed(seed)
    m = 5 if "gallery" in sides else n
    x, y = (torch.randint(-1, 2, (size, 2), generator=generator).float() for size in (n, m))
    code, other = (torch.randint(6, (size,), generator=generator) for size in (n, m))
    item, other_item = (torch.randint(4, (size,), generator=generator) for size in (n, m))
    if "gallery" not in sides:
        y, other = x, code
        item = item if "items" in sides else torch.arange(n)
        other_item = item
    has_rule = sides != "gallery"
    label, labels = ([CLASSES[c] for c in codes] for codes in (code, other))
    given_sides = {"gallery": y, "gallery_label": labels} if "gallery" in sides else {}
    if "items" in sides:
        given_sides |= {"item": item} | ({"gallery_item": other_item} if "gallery" in sides else {})
    wanted = {}
    for i in range(n):
        rows = [j for j in range(m) if not (has_rule and item[i] == other_item[j])]
        if rows:
            wanted[i] = definition([float(x[i] @ y[j]) for j in rows], label[i], [labels[j] for j in rows], k)
    if not wanted:
        with pytest.raises(DataError, match="no query has anything to find"):
            score_hierarchy(x, label, TREE, ks=k, similarity="dot", **given_sides)
        return
    found = score_hierarchy(x, label, TREE, ks=k, similarity="dot", **given_sides)
    assert found.query.tolist() == list(wanted) and [CLASSES[c] for c in found.label] == [label[i] for i in wanted]
    assert found.per_query[f"lca_height_at_{k}"].tolist() == pytest.approx([float(each["height"]) for each in wanted.values()])
    precision = [np.nan if each["precision"] is None else float(each["precision"]) for each in wanted.values()]
    assert found.per_query[f"hierarchical_precision_at_{k}"].tolist() == pytest.approx(precision, nan_ok=True)
    n_mistakes = sum(each["mistake"] for each in wanted.values())
    assert found.n_mistakes == pytest.approx(float(n_mistakes))
    severity = float(sum(each["nearest"] for each in wanted.values()) / n_mistakes) if n_mistakes else np.nan
    assert found.metrics["mistake_severity"] == pytest.approx(severity, nan_ok=True)
    for place, scores in enumerate(found.recall.values()):
        recall = {i: float(each["recall"][place]) for i, each in wanted.items() if each["recall"][place] is not None}
        assert scores.query.tolist() == list(recall) and len(scores.skipped) == n - len(recall)
        assert scores.per_query[f"recall_at_{k}"].tolist() == pytest.approx(list(recall.values()))
    for name, value in found.per_query.items():
        assert found.metrics[name] == pytest.approx(float(value.nanmean()), nan_ok=True)


@pytest.fixture
def rows():
    """Return embeddings near their classes, with names of classes in a hierarchy of 24 classes."""
    generator = torch.Generator().manual_seed(1)
    code = torch.arange(240) % 24
    x = torch.randn(24, 8, generator=generator)[code] + torch.randn(240, 8, generator=generator)
    names = [f"c{c}" for c in range(24)]
    tree = hierarchy_from_groups(names, {"family": [c // 3 for c in range(24)], "order": [c // 12 for c in range(24)]})
    return x, [names[c] for c in code], tree


def test_recall_of_each_level_is_that_of_score(rows):
    x, label, tree = rows
    found = score_hierarchy(x, label, tree, ks=(1, 5))
    columns = {name: dict(zip(tree.classes, tree.groups_of(name), strict=True)) for name in tree.names}
    for level, scores in found.recall.items():
        alone = score(
            x, label if level == "label" else [columns[level][name] for name in label], metrics="recall_at_k", ks=(1, 5)
        )
        assert scores.metrics == alone.metrics
        assert {row["label"] for row in scores.per_class()} == {row["label"] for row in alone.per_class()}


def test_the_nearest_heights_are_severity_times_the_share_of_mistakes(rows):
    found = score_hierarchy(*rows, ks=1)
    product = found.metrics["mistake_severity"] * found.n_mistakes / len(found.query)
    assert found.metrics["lca_height_at_1"] == pytest.approx(product)
    assert found.n_mistakes == pytest.approx(240 * (1 - found.recall["label"].metrics["recall_at_1"]))


def test_a_space_sorted_by_the_hierarchy_is_perfect_and_one_that_says_nothing_is_chance(rows):
    _, label, tree = rows
    code = torch.tensor([int(name[1:]) for name in label])
    one_hot = torch.nn.functional.one_hot
    sorted_space = torch.cat([4 * one_hot(code // 12), 2 * one_hot(code // 3), one_hot(code)], dim=1)
    best = score_hierarchy(sorted_space, label, tree, ks=(1, 20, 100, 239))
    assert all(best.metrics[f"hierarchical_precision_at_{k}"] == pytest.approx(1) for k in (1, 20, 100, 239))
    assert isnan(best.metrics["mistake_severity"]) and best.n_mistakes == 0
    found = score_hierarchy(torch.ones(240, 3), label, tree, ks=(1, 20))
    pairs = tree.lca_height(code.repeat_interleave(240), code.repeat(240)).view(240, 240).double()
    chance = pairs.sum(dim=1) / 239
    for k in (1, 20):
        assert torch.allclose(found.per_query[f"lca_height_at_{k}"], chance)


def test_a_lone_class_is_asked_for_heights_but_not_for_recall_of_its_class():
    x = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]
    found = score_hierarchy(x, ["oak", "elm", "cod"], TREE, ks=1)
    assert found.recall["label"].skipped.tolist() == [0, 1, 2] and isnan(found.recall["label"].metrics["recall_at_1"])
    assert found.recall["family"].query.tolist() == [0, 1]
    assert found.per_query["lca_height_at_1"].tolist() == [1, 1, 3] and found.metrics["mistake_severity"] == pytest.approx(5 / 3)
    assert found.per_query["hierarchical_precision_at_1"].isnan().tolist() == [False, False, True]
    assert found.to_dict()["recall"]["label"] == {"recall_at_1": None}
    assert found.to_dict()["n_skipped"] == {"label": 3, "family": 1, "kingdom": 1}


def test_intervals_hold_the_mean_and_the_text_has_every_number(rows):
    found = score_hierarchy(*rows, ks=(1, 5))
    for name in found.per_query:
        for over in ("query", "class"):
            low, high = found.interval(name, over=over)
            assert low < found.metrics[name] < high
    text = str(found)
    for name, value in found.metrics.items():
        assert (f"{100 * value:.2f}" if "precision" in name else f"{value:.3f}") in text
    for scores in found.recall.values():
        assert f"{100 * scores.metrics['recall_at_5']:.2f}" in text
    with pytest.raises(ConfigError, match="no per-query values of `mistake_severity`"):
        found.interval("mistake_severity")


def test_classes_that_the_hierarchy_lacks_and_settings_that_do_not_fit_are_refused(rows):
    x, label, tree = rows
    with pytest.raises(DataError, match=r"label: 1 of 24 classes are not in the hierarchy, such as 'oak'"):
        score_hierarchy(x, ["oak" if name == "c3" else name for name in label], tree)
    with pytest.raises(DataError, match="gallery_label: .* such as 3"):
        score_hierarchy(x, label, tree, gallery=x, gallery_label=[3] * 240)
    with pytest.raises(ConfigError, match="ks is empty"):
        score_hierarchy(x, label, tree, ks=())
    with pytest.raises(ConfigError, match="gallery needs `gallery_label`"):
        score_hierarchy(x, label, tree, gallery=x)
    with pytest.raises(ConfigError, match="need `gallery`"):
        score_hierarchy(x, label, tree, gallery_label=label)
    with pytest.raises(ConfigError, match="go together"):
        score_hierarchy(x, label, tree, gallery=x, gallery_label=label, item=range(240))
