"""Agreement of two groupings, against all permutations and scikit-learn."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.errors import ConfigError, DataError, ShapeError
from kinfold.evaluation.agreement import agreement, agreements

GROUPINGS = st.integers(1, 30).flatmap(
    lambda n: st.tuples(st.lists(st.integers(0, 5), min_size=n, max_size=n), st.lists(st.integers(0, 5), min_size=n, max_size=n))
)


def exact(one: list, other: list) -> tuple[float, float]:
    """Return p-value and mean NMI over all orders of the second grouping."""
    found = adjusted_mutual_info_score(one, other)
    shuffled = list(permutations(other))
    as_good = sum(adjusted_mutual_info_score(one, each) >= found - 1e-9 for each in shuffled)
    return as_good / len(shuffled), float(np.mean([normalized_mutual_info_score(one, each) for each in shuffled]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]),
        ([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2]),
        ([0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 2]),
        ([0, 0, 0, 0, 1, 2], [3, 3, 3, 4, 4, 5]),
    ],
)
def test_p_value_and_chance_level_are_those_of_all_permutations(one, other):
    p_value, chance = exact(one, other)
    found = agreement(one, other, permutations=4000)
    assert found.p_value == pytest.approx(p_value, abs=4 * (p_value * (1 - p_value) / 4000) ** 0.5 + 1 / 4000)
    assert found.chance_mean == pytest.approx(chance, abs=0.02)


@settings(max_examples=60, deadline=None)
@given(GROUPINGS)
def test_values_are_those_of_scikit_learn_and_never_missing(pair):
    one, other = pair
    found = agreement(one, other, permutations=5)
    assert found.ami == pytest.approx(adjusted_mutual_info_score(one, other), abs=1e-9)
    assert found.nmi == pytest.approx(normalized_mutual_info_score(one, other), abs=1e-9)
    assert 0 <= found.chance_mean <= 1 and 1 / 6 <= found.p_value <= 1
    assert all(np.isfinite(value) for value in found.to_dict().values())


@settings(max_examples=40, deadline=None)
@given(GROUPINGS)
def test_names_and_order_of_the_groups_do_not_matter(pair):
    one, other = pair
    found, renamed = agreement(one, other, permutations=20), agreement([f"g{9 - code}" for code in one], other, permutations=20)
    assert renamed.to_dict() == pytest.approx(found.to_dict())
    swapped = agreement(other, one, permutations=20)
    assert (swapped.ami, swapped.nmi) == pytest.approx((found.ami, found.nmi))


def test_equal_groupings_agree_fully_and_as_no_shuffle_does():
    code = [i % 7 for i in range(70)]
    found = agreement(code, [f"group {c}" for c in code], permutations=200)
    assert (found.ami, found.nmi) == pytest.approx((1, 1))
    assert found.p_value == 1 / 201 and found.n == 70 and found.n_permutations == 200
    assert 0 < found.chance_mean < 0.5


def test_the_p_value_of_groupings_that_have_nothing_to_do_with_each_other_is_uniform():
    random = np.random.default_rng(1)
    p = np.array(
        [agreement(random.integers(6, size=80), random.integers(9, size=80), permutations=99).p_value for _ in range(200)]
    )
    for level in (0.1, 0.3, 0.5, 0.8):
        assert (p <= level).mean() == pytest.approx(level, abs=3.5 * (level * (1 - level) / 200) ** 0.5)


def test_a_grouping_that_no_shuffle_changes_has_a_p_value_of_one():
    several, single, alone = [0, 0, 1, 1, 2], [0] * 5, [0, 1, 2, 3, 4]
    for one, other, expected in (
        (single, several, (0, 0)),
        (several, single, (0, 0)),
        (single, single, (1, 1)),
        (alone, alone, (1, 1)),
    ):
        found = agreement(one, other, permutations=50)
        assert (found.ami, found.nmi) == pytest.approx(expected)
        assert found.p_value == 1
    assert agreement(alone, several, permutations=50).ami == 0
    assert agreement(alone, several, permutations=50).p_value == 1
    assert agreement(single, single, permutations=3).chance_mean == 1
    assert agreement(["only"], ["only"], permutations=3).ami == 1


def test_the_seed_decides():
    random = np.random.default_rng(0)
    one, other = random.integers(4, size=60), random.integers(4, size=60)
    assert agreement(one, other, seed=1) == agreement(one, other, seed=1)
    assert agreement(one, other, seed=1).chance_mean != agreement(one, other, seed=2).chance_mean


def test_levels_of_two_hierarchies_are_compared_pair_by_pair():
    classes = list(range(12))
    learned = hierarchy_from_groups(classes, {"level_1": [c // 2 for c in classes], "level_2": [c // 6 for c in classes]})
    given_ = {"family": [c // 3 for c in classes]}
    rows = agreements(learned.columns(), given_, permutations=20)
    assert [(row.level, row.groups, row.other, row.other_groups) for row in rows] == [
        ("level_1", 6, "family", 4),
        ("level_2", 2, "family", 4),
    ]
    for row in rows:
        assert row.agreement == agreement(learned.columns()[row.level], given_["family"], permutations=20)
        assert row.to_dict() == {"level": row.level, "groups": row.groups, "other": "family", "other_groups": 4} | (
            row.agreement.to_dict()
        )


@pytest.mark.parametrize(
    ("one", "other", "options", "error", "message"),
    [
        ([0, 1], [0, 1, 2], {}, ShapeError, "2 and 3 classes"),
        ([], [], {}, DataError, "no class"),
        ([0, 1], [0, None], {}, DataError, "None"),
        ([0, 1], [0, 1], {"permutations": 0}, ConfigError, "permutations = 0"),
    ],
)
def test_mistakes_are_named(one, other, options, error, message):
    with pytest.raises(error, match=message):
        agreement(one, other, **options)
