"""Groups found in embeddings."""

import numpy as np
import pytest
import torch

from kinfold.clusterings import CLUSTERINGS
from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.errors import ConfigError, DataError, ShapeError
from kinfold.evaluation.agreement import agreements
from kinfold.fitted_hierarchy import fit_hierarchy

ORDERS = {0: "x", 1: "x", 2: "y", 3: "y", 4: "y", 5: "z"}  # family → order


def embeddings(scale: float = 1.0) -> tuple[torch.Tensor, list[str]]:
    """Return rows of 18 classes: six families of three, in three orders, far apart and shuffled."""
    random = np.random.default_rng(0)
    order = {name: 10 * random.normal(size=16) for name in "xyz"}
    family = {number: order[name] + 3 * random.normal(size=16) for number, name in ORDERS.items()}
    label = random.permutation([f"{number}{letter}" for number in ORDERS for letter in "abc"] * 4).tolist()
    own = {name: family[int(name[0])] + 0.3 * random.normal(size=16) for name in sorted(set(label))}
    x = np.stack([own[name] + 0.1 * random.normal(size=16) for name in label])
    return torch.from_numpy(scale * x), label


def given_columns(classes) -> dict:
    families = [int(name[0]) for name in classes]
    return {"family": families, "order": [ORDERS[family] for family in families]}


@pytest.mark.parametrize("space", ["unit", "raw"])
@pytest.mark.parametrize("method", list(CLUSTERINGS))
def test_planted_families_and_orders_are_found(method, space):
    x, label = embeddings()
    tree = fit_hierarchy(x, label, (6, 3), method=method, space=space)
    assert tree.classes == tuple(sorted(set(label))) and tree.sizes == (6, 3)
    found = {(row.level, row.other): row.agreement.ami for row in agreements(tree.columns(), given_columns(tree.classes))}
    assert found["level_1", "family"] == pytest.approx(1)
    assert found["level_2", "order"] == pytest.approx(1)


def test_unit_space_sees_directions_and_raw_space_lengths():
    direction = torch.tensor([[1.0, 0.0], [1.0, 0.05], [0.0, 1.0], [0.05, 1.0]])
    length = torch.tensor([1.0, 50.0, 1.0, 50.0])
    rows, label = direction * length[:, None], ["p", "q", "r", "s"]
    by_direction = hierarchy_from_groups(label, {"level_1": [0, 0, 1, 1]})
    assert list(fit_hierarchy(rows, label, (2,)).members("level_1").values()) == list(by_direction.members("level_1").values())
    assert list(fit_hierarchy(rows, label, (2,), space="raw").members("level_1").values()) != [("p", "q"), ("r", "s")]


def test_in_unit_space_a_long_row_counts_no_more_than_a_short_one():
    rows = torch.tensor([[1.0, 0], [1, 0], [1, 0.1], [0, 90], [1, 0], [0, 1]])
    label = ["a", "a", "a", "a", "east", "north"]
    assert sorted(fit_hierarchy(rows, label, (2,)).members("level_1").values()) == [("a", "east"), ("north",)]


def test_class_means_not_images_are_clustered():
    # Class b has one image far away: its mean lies with a, though most of c's images are nearer to that one.
    rows = np.array([[0.0, 0], [0.1, 0], [0, 0], [0.2, 0], [4, 0], [9, 0], [9, 0.1]])
    tree = fit_hierarchy(rows, ["a", "a", "b", "b", "b", "c", "c"], (2,), space="raw")
    assert sorted(tree.members("level_1").values()) == [("a", "b"), ("c",)]


def test_the_seed_decides_and_the_caller_is_not_disturbed():
    x, label = embeddings()
    state = torch.get_rng_state()
    assert fit_hierarchy(x, label, (7,), seed=3) == fit_hierarchy(x, label, (7,), seed=3)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("sizes", [(), (3, 3), (3, 5), (6, 1), (19,), (0,)])
def test_sizes_fall_from_the_number_of_classes_to_two(sizes):
    x, label = embeddings()
    with pytest.raises(ConfigError, match="at most 18, the number of classes and at least 2"):
        fit_hierarchy(x, label, sizes)


def test_other_mistakes_are_named():
    x, label = embeddings()
    with pytest.raises(ConfigError, match="did you mean `kmeans`"):
        fit_hierarchy(x, label, (3,), method="kmean")
    with pytest.raises(ConfigError, match="did you mean `unit`"):
        fit_hierarchy(x, label, (3,), space="units")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ShapeError, match="for 3 labels"):
        fit_hierarchy(x, label[:3], (3,))
    x[5, 2] = float("nan")
    with pytest.raises(DataError, match="not finite"):
        fit_hierarchy(x, label, (3,))
