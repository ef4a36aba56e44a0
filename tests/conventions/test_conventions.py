"""What every user may rely on: sign, orientation, margins, weights, self-matches and heights."""

from dataclasses import replace

import pytest
import torch

from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.core.pairs import pairs_from_labels, reweight, shift, without_same_item, without_self
from kinfold.core.similarity import SIMILARITIES, cosine
from kinfold.evaluation.hierarchy_metrics import score_hierarchy
from kinfold.losses import LOSSES

LABEL = torch.tensor([0, 0, 1, 1])
PAIRS = pairs_from_labels(LABEL, torch.tensor([0, 1, 2]))
SIM = torch.tensor([[0.3, 0.7, -0.2], [0.2, 0.4, 0.0], [0.3, 0.2, 0.1], [-0.1, 0.1, 0.2]], dtype=torch.float64)


@pytest.mark.parametrize("name", sorted(SIMILARITIES))
def test_larger_similarity_means_more_alike(name):
    near, far = SIMILARITIES[name](torch.tensor([[2.0, 1.0]]), torch.tensor([[2.0, 1.1], [-1.0, 0.5]]))[0]
    assert near > far


@pytest.mark.parametrize("name", sorted(SIMILARITIES))
def test_rows_are_the_first_argument_and_columns_the_second(name):
    assert SIMILARITIES[name](torch.ones(2, 4), torch.ones(5, 4)).shape == (2, 5)
    assert pairs_from_labels(torch.zeros(2, dtype=torch.long), torch.zeros(5, dtype=torch.long)).positive.shape == (2, 5)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_loss_falls_when_positives_come_nearer_and_negatives_go_away(name):
    better = SIM + 0.1 * PAIRS.positive.double() - 0.1 * PAIRS.negative.double()
    assert LOSSES[name](better, PAIRS) < LOSSES[name](SIM, PAIRS)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_positive_margin_makes_positives_harder_and_negatives_easier(name):
    plain = LOSSES[name](SIM, PAIRS)
    assert LOSSES[name](SIM, shift(PAIRS, 0.3 * PAIRS.positive.double())) > plain
    assert LOSSES[name](SIM, shift(PAIRS, 0.3 * PAIRS.negative.double())) < plain


@pytest.mark.parametrize("name", ["binomial_deviance", "contrastive", "normalized_softmax", "proxy_nca", "triplet"])
def test_averages_are_multiplied_by_the_weight_of_their_pairs_and_not_freed_of_it(name):
    weight = 1.0 + 2.0 * PAIRS.positive.double()
    pairs = replace(PAIRS, negative=PAIRS.negative & (name not in {"binomial_deviance", "contrastive"}))
    three_times = LOSSES[name](SIM, reweight(pairs, weight))
    assert three_times.item() == pytest.approx(3 * LOSSES[name](SIM, pairs).item(), rel=1e-12)


def test_an_item_is_no_match_of_itself_and_is_known_by_item_not_by_place_or_value():
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])  # two photographs that are copies of one another
    batch = without_self(pairs_from_labels(torch.zeros(2, dtype=torch.long), torch.zeros(2, dtype=torch.long)))
    assert batch.positive.tolist() == [[False, True], [True, False]]
    assert cosine(x, x).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    label = torch.zeros(2, dtype=torch.long)
    memory = without_same_item(pairs_from_labels(label, label), torch.tensor([7, 8]), torch.tensor([8, 7]))
    assert memory.positive.tolist() == [[True, False], [False, True]]


def test_only_similarities_normalise_embeddings():
    x = torch.tensor([[3.0, 4.0]])
    assert cosine(x, x).item() == pytest.approx(1.0)
    assert SIMILARITIES["dot"](x, x).item() == 25.0


def test_heights_count_from_the_class_to_the_root_and_a_lone_class_has_heights_but_no_recall():
    tree = hierarchy_from_groups(["oak", "elm", "fly", "cod"], {"kind": ["tree", "tree", "insect", "fish"]})
    assert tree.lca_height(torch.tensor([0, 0, 0]), torch.tensor([0, 1, 2])).tolist() == [0, 1, 2]
    found = score_hierarchy([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], ["oak", "elm", "fly"], tree, ks=1)
    assert found.per_query["lca_height_at_1"].tolist() == [1, 1, 2]
    assert found.per_query["hierarchical_precision_at_1"][:2].tolist() == [1, 1], "the nearest could not be nearer"
    assert found.recall["label"].skipped.tolist() == [0, 1, 2]
