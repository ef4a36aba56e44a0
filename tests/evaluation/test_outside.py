"""The share of relatives among the nearest of other classes, against a list of every order."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.errors import ConfigError, DataError, ShapeError
from kinfold.evaluation.outside import outside_share
from tests.evaluation.ranking_oracle import orders

PARENT = [0, 0, 1, 1, 2]


def share(sims, relative, k):
    """Return the mean share over all orders of ties, from the definition."""
    k = min(k, len(sims))
    shares = [Fraction(sum(relative[j] for j in order[:k]), k) for order in orders(sims)]
    return float(sum(shares) / len(shares))


@given(st.integers(3, 7), st.integers(1, 8), st.booleans(), st.integers(0, 2**30))
@settings(max_examples=60, deadline=None)
def test_the_share_and_its_chance_equal_the_definition(n, k, has_gallery, seed):
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randint(-1, 2, (size, 2), generator=generator).float() for size in (n, 6))
    label, other = (torch.randint(5, (size,), generator=generator) for size in (n, 6))
    group, other_group = torch.tensor(PARENT)[label], torch.tensor(PARENT)[other]
    y, other, other_group = (y, other, other_group) if has_gallery else (x, label, group)
    wanted, chance, alone = [], [], []
    for i in range(n):
        rows = [j for j in range(len(y)) if other[j] != label[i]]
        relative = [bool(other_group[j] == group[i]) for j in rows]
        if not any(relative):
            alone.append(i)
            continue
        wanted.append(share([float(x[i] @ y[j]) for j in rows], relative, k))
        chance.append(sum(relative) / len(relative))
    sides = {"gallery": y, "gallery_label": other, "gallery_group": other_group} if has_gallery else {}
    if not wanted:
        with pytest.raises(DataError, match="no query has another class in its super-category"):
            outside_share(x, label, group, k=k, similarity="dot", **sides)
        return
    found = outside_share(x, label, group, k=k, similarity="dot", **sides)
    assert found.alone.tolist() == alone
    assert found.query.tolist() == [i for i in range(n) if i not in alone]
    assert found.per_query.tolist() == pytest.approx(wanted)
    assert found.chance_per_query.tolist() == pytest.approx(chance)
    assert (found.share, found.chance) == pytest.approx((sum(wanted) / len(wanted), sum(chance) / len(chance)))
    assert [found.class_names[c] for c in found.label] == label[found.query].tolist()


def test_embeddings_that_say_nothing_give_chance_exactly():
    label = torch.arange(60) % 10
    found = outside_share(torch.ones(60, 4), label, label % 3, k=7)
    assert found.per_query.tolist() == pytest.approx(found.chance_per_query.tolist(), abs=1e-12)


def test_sorted_classes_give_one_and_how_tight_a_class_is_does_not_matter():
    label = torch.arange(80) % 8
    group = label // 4
    centre = torch.nn.functional.one_hot(group, 2).float() * 5
    for spread in (0.0, 0.1):
        x = torch.cat([centre, spread * torch.randn(80, 3), torch.nn.functional.one_hot(label, 8).float()], dim=1)
        assert outside_share(x, label, group, k=30).share == 1
    assert outside_share(x, label, group, k=69).share < 1, "there are but 30 rows of relatives"


def test_the_interval_holds_the_share_and_the_text_says_the_numbers():
    label = torch.arange(90) % 9
    found = outside_share(torch.randn(90, 5), label, ["abc"[c % 3] for c in label], k=5)
    for over in ("query", "class"):
        low, high = found.interval(over=over)
        assert low < found.share < high
    assert str(found).startswith(f"of the 5 nearest outside the own class {100 * found.share:.1f} % share")
    assert found.to_dict() == {"k": 5, "share": found.share, "chance": found.chance, "n_scored": 90, "n_alone": 0}


def test_columns_that_do_not_fit_are_refused():
    x, label, group = torch.randn(4, 2), ["a", "a", "b", "c"], ["x", "x", "x", "y"]
    with pytest.raises(DataError, match="class 'a' lies in two super-categories, 'x' and 'y'"):
        outside_share(x, label, ["x", "y", "x", "y"])
    with pytest.raises(DataError, match="2 groups hold 2 classes"):
        outside_share(x, ["a", "a", "b", "b"], ["x", "x", "y", "y"])
    with pytest.raises(ShapeError, match="group has 3 entries for 4 labels"):
        outside_share(x, label, group[:3])
    with pytest.raises(ShapeError, match="4 entries for 3 embeddings"):
        outside_share(x[:3], label, group)
    with pytest.raises(ConfigError, match="gallery, gallery_label and gallery_group go together"):
        outside_share(x, label, group, gallery=x)
    with pytest.raises(ConfigError, match="at least 1"):
        outside_share(x, label, group, k=0)
