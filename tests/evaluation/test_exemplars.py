"""Images that stand for a group, against a plain search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.errors import ConfigError, ShapeError
from kinfold.evaluation.exemplars import exemplars

TREE = hierarchy_from_groups(["a", "b", "c", "d"], {"kind": ["p", "p", "p", "q"]})


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abcdx"), min_size=1, max_size=20), st.integers(1, 6), st.integers(0, 1000))
def test_the_nearest_of_distinct_classes_come_first(label, n, seed):
    x = np.random.default_rng(seed).normal(size=(len(label), 5))
    found = exemplars(x, label, TREE, "kind", n=n)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    for group, classes in TREE.members("kind").items():
        rows = [i for i, name in enumerate(label) if name in classes]
        if not rows:
            assert group not in found
            continue
        mean = sum(unit[i] for i in rows)
        near = sorted(rows, key=lambda i: -round(float(unit[i] @ mean), 11))
        expected, left = [], near
        while left:  # round by round, the best that is left of each class
            best = {}
            for i in left:
                best.setdefault(label[i], i)
            expected += sorted(best.values(), key=near.index)
            left = [i for i in left if i not in best.values()]
        assert list(found[group]) == expected[:n]


def test_lengths_do_not_count():
    x = np.array([[1.0, 0.1], [100.0, 30.0], [1.0, 0.0]])
    assert exemplars(x, ["a", "a", "b"], TREE, "kind", n=3) == exemplars(x / 7, ["a", "a", "b"], TREE, "kind", n=3)
    assert exemplars(x, ["a", "a", "b"], TREE, "kind", n=1)["p"] == (0,)


def test_mistakes_are_named():
    with pytest.raises(ConfigError, match="n = 0"):
        exemplars(np.ones((1, 2)), ["a"], TREE, "kind", n=0)
    with pytest.raises(ConfigError, match="did you mean `kind`"):
        exemplars(np.ones((1, 2)), ["a"], TREE, "kinds")
    with pytest.raises(ShapeError, match="1 embeddings and 2 labels"):
        exemplars(np.ones((1, 2)), ["a", "b"], TREE, "kind")
