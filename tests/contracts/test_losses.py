"""The contract that every line of the table of losses keeps."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.autograd import gradcheck

from kinfold.core.pairs import append_columns, pairs_from_labels, without_self
from kinfold.core.similarity import cosine, negative_euclidean
from kinfold.errors import ConfigError, ShapeError
from kinfold.losses import LOSSES
from kinfold.records import Pairs
from tests import oracles
from tests.contracts.cases import CASES, SETTINGS, Case, oracle_value


def test_every_loss_has_a_setting_and_an_oracle_of_its_name():
    assert {name.split("-")[0] for name in SETTINGS} == set(LOSSES)
    assert all(callable(getattr(oracles, name)) for name in LOSSES)
    assert all(function.__name__ == name for name, function in LOSSES.items())


def gradient_of(loss, sim: torch.Tensor, pairs: Pairs) -> torch.Tensor:
    sim = sim.clone().requires_grad_()
    value = loss(sim, pairs)
    assert value.shape == ()
    assert value.requires_grad
    value.backward()
    assert sim.grad is not None
    return sim.grad


@pytest.fixture(params=sorted(CASES))
def case(request) -> Case:
    return CASES[request.param]


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
class TestEveryLoss:
    def test_matches_the_papers_sum(self, setting, case):
        expected = oracle_value(setting.oracle, case.sim, case.pairs)
        assert setting.loss(case.sim, case.pairs).item() == pytest.approx(expected, rel=1e-8, abs=1e-12)

    def test_gradient_to_similarities_margins_and_weights(self, setting, case):
        def loss(sim, margin, weight):
            return setting.loss(sim, case.pairs_with(margin=margin, weight=weight))

        leaves = [x.clone().requires_grad_() for x in (case.sim, case.pairs.margin, case.pairs.weight)]
        assert gradcheck(loss, leaves)

    def test_weights_of_one_are_no_weights(self, setting, case):
        ones = case.pairs_with(weight=torch.ones_like(case.sim))
        none = case.pairs_with(weight=None)
        assert setting.loss(case.sim, ones).item() == pytest.approx(setting.loss(case.sim, none).item(), rel=1e-13)

    @pytest.mark.parametrize("side", ["positive", "negative"])
    def test_weight_zero_silences_the_pair(self, setting, case, side):
        pair = getattr(case.pairs, side).nonzero()[0].tolist()
        weight = case.pairs.weight.clone()
        weight[pair[0], pair[1]] = 0.0
        pairs = case.pairs_with(weight=weight)
        gradient = gradient_of(setting.loss, case.sim, pairs)
        assert gradient.isfinite().all()
        assert gradient[pair[0], pair[1]] == 0.0
        assert setting.loss(case.sim, pairs).item() == pytest.approx(oracle_value(setting.oracle, case.sim, pairs), rel=1e-8)

    def test_all_weights_zero_give_zero_and_a_zero_gradient(self, setting, case):
        pairs = case.pairs_with(weight=torch.zeros_like(case.sim))
        assert setting.loss(case.sim, pairs).item() == 0.0
        assert (gradient_of(setting.loss, case.sim, pairs) == 0).all()

    def test_weight_is_a_coefficient_of_averages(self, setting, case):
        other = torch.rand(case.sim.shape, dtype=torch.float64)
        for side in setting.averaged:
            here = getattr(case.pairs, side)
            ends = [torch.where(here, w, case.pairs.weight) for w in (case.pairs.weight * 2, other)]
            middle = case.pairs_with(weight=0.25 * ends[0] + 0.75 * ends[1])
            low, high = (setting.loss(case.sim, case.pairs_with(weight=end)).item() for end in ends)
            assert setting.loss(case.sim, middle).item() == pytest.approx(0.25 * low + 0.75 * high, rel=1e-12)

    def test_weight_two_inside_an_exponential_is_the_pair_twice(self, setting, case):
        for side in setting.exponential:
            for i, j in getattr(case.pairs, side).nonzero().tolist()[:3]:
                weight = case.pairs.weight.clone()
                weight[i, j] *= 2
                doubled = setting.loss(case.sim, case.pairs_with(weight=weight)).item()
                assert doubled == pytest.approx(setting.loss(*with_pair_twice(case, i, j, setting)).item(), rel=1e-12)

    def test_margin_is_a_shift_of_similarity(self, setting, case):
        moved = setting.loss(case.sim - case.pairs.margin, case.pairs_with(margin=0.0))
        assert setting.loss(case.sim, case.pairs).item() == moved.item()

    def test_no_pairs_give_zero_and_a_zero_gradient(self, setting, case):
        nothing = torch.zeros_like(case.pairs.positive)
        pairs = case.pairs_with(positive=nothing, negative=nothing)
        assert setting.loss(case.sim, pairs).item() == 0.0
        with torch.autograd.set_detect_anomaly(True):  # a NaN that a later mask would hide is an error, too
            assert (gradient_of(setting.loss, case.sim, pairs) == 0).all()

    @pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
    def test_no_rows_or_no_columns_give_zero_with_a_graph(self, setting, shape):
        nothing = torch.zeros(shape, dtype=torch.bool)
        for weight in (None, torch.ones(shape)):
            pairs = Pairs(nothing, nothing, weight=weight)
            assert setting.loss(torch.zeros(shape), pairs).item() == 0.0
            assert gradient_of(setting.loss, torch.zeros(shape), pairs).shape == shape

    @pytest.mark.parametrize("side", ["positive", "negative"])
    def test_one_empty_side_matches_the_papers_sum(self, setting, case, side):
        pairs = replace(case.pairs, **{side: torch.zeros_like(case.pairs.positive)})
        assert setting.loss(case.sim, pairs).item() == pytest.approx(oracle_value(setting.oracle, case.sim, pairs), rel=1e-8)
        assert gradient_of(setting.loss, case.sim, pairs).isfinite().all()

    def test_order_does_not_matter(self, setting, case):
        rows, columns = (torch.randperm(size) for size in case.sim.shape)
        sim, positive, negative, margin, weight = (
            x[rows][:, columns]
            for x in (case.sim, case.pairs.positive, case.pairs.negative, case.pairs.margin, case.pairs.weight)
        )
        mixed = setting.loss(sim, Pairs(positive, negative, margin, weight)).item()
        assert mixed == pytest.approx(setting.loss(case.sim, case.pairs).item(), rel=1e-12)

    def test_ignored_entries_do_not_matter(self, setting, case):
        ignored = ~(case.pairs.positive | case.pairs.negative)
        for value in (5.0, -5.0, 1e4):
            sim = case.sim.masked_fill(ignored, value)
            assert setting.loss(sim, case.pairs).item() == pytest.approx(setting.loss(case.sim, case.pairs).item(), rel=1e-12)
            assert (gradient_of(setting.loss, sim, case.pairs)[ignored] == 0).all()

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    def test_half_precision_is_finite_and_computed_in_float32(self, setting, case, dtype):
        sim = case.sim.to(dtype)
        pairs = case.pairs_with(margin=case.pairs.margin.to(dtype), weight=case.pairs.weight.to(dtype))
        value = setting.loss(sim, pairs)
        assert value.dtype == torch.promote_types(dtype, torch.float32)
        wide = case.pairs_with(margin=pairs.margin.double(), weight=pairs.weight.double())
        assert value.item() == pytest.approx(setting.loss(sim.double(), wide).item(), rel=1e-4, abs=1e-5)
        gradient = gradient_of(setting.loss, sim, pairs)
        assert gradient.dtype == dtype
        assert gradient.isfinite().all()

    @pytest.mark.parametrize("size", [1.0, 100.0, 1e4])
    def test_extreme_similarities_are_finite(self, setting, case, size):
        pairs = case.pairs_with(margin=0.0, weight=None)
        ends = (torch.full_like(case.sim, size), torch.full_like(case.sim, -size), case.sim.sign() * size)
        for sim, dtype in product(ends, (torch.float16, torch.bfloat16, torch.float32)):
            assert setting.loss(sim.to(dtype), pairs).isfinite()
            assert gradient_of(setting.loss, sim.to(dtype), pairs).isfinite().all()

    def test_nothing_is_changed_in_place(self, setting, case):
        tensors = (case.sim, case.pairs.positive, case.pairs.negative, case.pairs.margin, case.pairs.weight)
        before = [x.clone() for x in tensors]
        setting.loss(case.sim, case.pairs)
        assert all(torch.equal(x, y) for x, y in zip(before, tensors, strict=True))

    def test_a_pair_of_wrong_size_is_refused_with_both_sizes(self, setting):
        pairs = pairs_from_labels(torch.arange(8), torch.arange(6))
        with pytest.raises(ShapeError, match=r"`sim` is \(8, 5\) but `pairs` are \(8, 6\)"):
            setting.loss(torch.zeros(8, 5), pairs)


def with_pair_twice(case: Case, i: int, j: int, setting) -> tuple[torch.Tensor, Pairs]:
    """Append a copy of a pair: in a column of its own, or, for a loss whose columns are anchors, in a row of its own."""
    is_by_column = setting.loss.func.__name__ == "proxy_anchor"
    kept = torch.zeros_like(case.pairs.positive)
    kept[i, j] = True
    copied = case.pairs_with(positive=case.pairs.positive & kept, negative=case.pairs.negative & kept)
    if not is_by_column:
        columns = [j]
        copied = Pairs(*(x[:, columns] for x in (copied.positive, copied.negative, copied.margin, copied.weight)))
        return torch.cat([case.sim, case.sim[:, columns]], dim=1), append_columns(case.pairs, copied)
    both = (
        torch.cat([x, y[[i]]])
        for x, y in (
            (case.pairs.positive, copied.positive),
            (case.pairs.negative, copied.negative),
            (case.pairs.margin, copied.margin),
            (case.pairs.weight, copied.weight),
        )
    )
    return torch.cat([case.sim, case.sim[[i]]]), Pairs(*both)


def degenerate_batches() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(3))
    return {
        "one class only": (x, torch.zeros(6, dtype=torch.long)),
        "no positives": (x, torch.arange(6)),
        "duplicated rows": (x[[0, 0, 1, 1, 0, 0]], torch.tensor([0, 0, 1, 1, 1, 0])),
        "a constant embedding": (torch.ones(6, 3), torch.tensor([0, 0, 1, 1, 2, 2])),
        "a zero vector": (x * (torch.arange(6) > 1)[:, None], torch.tensor([0, 0, 1, 1, 2, 2])),
        "one row": (x[:1], torch.tensor([0])),
    }


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("similarity", [cosine, negative_euclidean])
@pytest.mark.parametrize("kind", degenerate_batches())
def test_degenerate_batches_have_finite_losses_and_gradients(setting, similarity, kind):
    x, label = degenerate_batches()[kind]
    x = x.clone().requires_grad_()
    pairs = without_self(pairs_from_labels(label, label))
    value = setting.loss(similarity(x, x), pairs)
    value.backward()
    assert value.isfinite()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert value.item() == pytest.approx(oracle_value(setting.oracle, similarity(x, x).detach(), pairs), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_does_not_lower_the_precision_of_a_loss(name, dtype):
    x = torch.randn(8, 16)
    pairs = without_self(pairs_from_labels(torch.arange(8) // 2, torch.arange(8) // 2))
    plain = LOSSES[name](cosine(x, x), pairs)
    with torch.autocast("cpu", dtype=dtype):
        mixed = LOSSES[name](cosine(x, x), pairs)
    assert mixed.dtype == torch.float32
    assert mixed.item() == plain.item()


@pytest.mark.parametrize("name", ["contrastive", "binomial_deviance", "multi_similarity"])
def test_a_margin_everywhere_is_a_raised_threshold(name):
    case = CASES["rectangular"]
    raised = {"positive_threshold": 0.6, "negative_threshold": 0.3} if name == "contrastive" else {"threshold": 0.6}
    base = {key: value - 0.1 for key, value in raised.items()}
    by_margin = LOSSES[name](case.sim, case.pairs_with(margin=0.1), **base)
    assert by_margin.item() == pytest.approx(LOSSES[name](case.sim, case.pairs_with(margin=0.0), **raised).item(), rel=1e-12)


@pytest.mark.parametrize("name", ["triplet", "lifted_structure", "normalized_softmax", "proxy_nca"])
def test_relative_losses_ignore_a_shift_that_is_constant_along_a_row(name):
    case = CASES["rectangular"]
    row = torch.rand(len(case.sim), 1, dtype=torch.float64).expand_as(case.sim)
    plain = LOSSES[name](case.sim, case.pairs_with(margin=0.0))
    assert LOSSES[name](case.sim, case.pairs_with(margin=row)).item() == pytest.approx(plain.item(), rel=1e-10)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("binomial_deviance", "alpha"),
        ("binomial_deviance", "cost"),
        ("multi_similarity", "alpha"),
        ("multi_similarity", "beta"),
        ("normalized_softmax", "scale"),
        ("proxy_anchor", "scale"),
        ("proxy_nca", "scale"),
    ],
)
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_a_slope_that_is_not_above_zero_is_refused_by_name(name, setting, value):
    case = CASES["proxies"]
    with pytest.raises(ConfigError, match=f"`{setting}` is {value}: it must be larger than 0"):
        LOSSES[name](case.sim, case.pairs, **{setting: value})
