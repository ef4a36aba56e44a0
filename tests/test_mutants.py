"""Small mistakes, written into a copy of each loss in memory: the comparison with the paper's sum must notice every one."""

import inspect
import sys
from functools import partial
from types import ModuleType

import pytest

from kinfold.core import mining, pairs, reduce
from kinfold.losses import LOSSES
from tests.contracts.cases import CASES, SETTINGS, oracle_value

CORE = {"pairs": pairs, "reduce": reduce, "mining": mining}

NO_MARGIN = ("s = shifted(sim, pairs)", "s = sim.double()")
SWAPPED_MASKS = [("pairs.positive,", "pairs.FIRST,"), ("pairs.negative,", "pairs.positive,"), ("pairs.FIRST,", "pairs.negative,")]
NO_POSITIVE_WEIGHT = ("pairs.positive, pairs.weight", "pairs.positive, None")
NO_NEGATIVE_WEIGHT = ("pairs.negative, pairs.weight", "pairs.negative, None")

MUTANTS = {
    "binomial_deviance": {
        "margin dropped": [NO_MARGIN],
        "sign flipped": [("softplus(-alpha", "softplus(alpha")],
        "weight of positives dropped": [NO_POSITIVE_WEIGHT],
        "weight of negatives dropped": [NO_NEGATIVE_WEIGHT],
        "slope without its cost": [("alpha * cost * (", "alpha * (")],
        "masks swapped": SWAPPED_MASKS,
        "one mean over both sides": [("mean_over_pairs(push,", "0.5 * mean_over_pairs(push,")],
    },
    "contrastive": {
        "margin dropped": [NO_MARGIN],
        "sign flipped": [("positive_threshold - s", "s - positive_threshold")],
        "thresholds swapped": [("relu(s - negative_threshold)", "relu(s - positive_threshold)")],
        "weights dropped": [("(pull, pairs.positive, pairs.weight)", "(pull, pairs.positive)")],
        "masks swapped": SWAPPED_MASKS,
        "not squared": [("pull.square(), push.square()", "pull, push")],
        "jump without its jump": [('if form != "jump"', "if True")],
        "active not counted": [('if average == "active"', "if False")],
        "anchors are columns": [("max(len(sim), 1)", "max(len(sim.T), 1)")],
    },
    "triplet": {
        "margin dropped": [NO_MARGIN],
        "gap dropped": [("+ margin", "")],
        "sign flipped": [
            (
                "s[picked.anchor, picked.negative] - s[picked.anchor, picked.positive]",
                "s[picked.anchor, picked.positive] - s[picked.anchor, picked.negative]",
            )
        ],
        "weight dropped": [("dtype=torch.bool), picked.weight", "dtype=torch.bool), None")],
        "pick reads similarities before their margins": [("pick(s.detach()", "pick(sim.detach()")],
        "soft is hinge": [("softplus(violation)", "relu(violation)")],
        "active not counted": [('if average == "active"', "if False")],
    },
    "lifted_structure": {
        "margin dropped": [NO_MARGIN],
        "gap dropped": [("margin - s", "-s")],
        "sign flipped": [("margin - s", "margin + s")],
        "hinge dropped": [("mean_over_rows(relu(", "mean_over_rows((")],
        "weight of positives dropped": [NO_POSITIVE_WEIGHT],
        "weight of negatives dropped": [NO_NEGATIVE_WEIGHT],
        "masks swapped": SWAPPED_MASKS,
        "columns forgotten": [("torch.logaddexp(torch.where(is_alone, 0.0, row), column)", "row.expand_as(s)")],
        "half forgotten": [(".square() / 2", ".square()")],
        "square forgotten": [(".square() / 2", " / 2")],
    },
    "multi_similarity": {
        "margin dropped": [NO_MARGIN],
        "sign flipped": [("(-alpha", "(alpha")],
        "slope wrong": [("beta * (s", "alpha * (s")],
        "not divided by its slope": [("dim=1)) / beta", "dim=1))")],
        "weight of positives dropped": [NO_POSITIVE_WEIGHT],
        "weight of negatives dropped": [NO_NEGATIVE_WEIGHT],
        "masks swapped": SWAPPED_MASKS,
        "one forgotten": [("softplus(masked", "(masked")],
        "columns are anchors": [("dim=1", "dim=0")],
    },
    "proxy_anchor": {
        "margin dropped": [NO_MARGIN],
        "delta of wrong sign": [("(s + margin)", "(s - margin)")],
        "sign flipped": [("(-scale", "(scale")],
        "weight of positives dropped": [NO_POSITIVE_WEIGHT],
        "weight of negatives dropped": [NO_NEGATIVE_WEIGHT],
        "masks swapped": SWAPPED_MASKS,
        "rows are anchors": [("dim=0))", "dim=1))")],
        "all proxies divide the positives": [("/ n_with_positive", "/ len(pull)")],
    },
    "proxy_nca": {
        "margin dropped": [("shifted(sim, pairs)", "sim.double()")],
        "scale dropped": [("s = scale * ", "s = ")],
        "weight of positives dropped": [NO_POSITIVE_WEIGHT],
        "weight of negatives dropped": [NO_NEGATIVE_WEIGHT],
        "masks swapped": SWAPPED_MASKS,
        "positive always in the denominator": [("if positive_in_denominator", "if True")],
        "sign flipped": [("softplus(negatives - s)", "softplus(s - negatives)")],
    },
    "normalized_softmax": {
        "margin dropped": [("shifted(sim, pairs)", "sim.double()")],
        "scale dropped": [("s = scale * ", "s = ")],
        "weight of positives dropped": [NO_POSITIVE_WEIGHT],
        "weight of negatives dropped": [NO_NEGATIVE_WEIGHT],
        "masks swapped": SWAPPED_MASKS,
        "sign flipped": [("negatives[:, None] - s", "s - negatives[:, None]")],
    },
}

SHARED_MUTANTS = {
    "averages divided by the weights": ("reduce", "keep.sum().clamp(min=1)", "(keep if weight is None else keep * weight).sum().clamp(min=1)"),
    "mean over the whole matrix": ("reduce", "/ keep.sum().clamp(min=1)", "/ max(keep.numel(), 1)"),
    "weights dropped inside an exponential": ("reduce", ".masked_fill(~keep, 1.0).log()", ".masked_fill(~keep, 1.0).log() * 0"),
    "ignored entries added": ("reduce", "return weighted.masked_fill(~keep, 0.0).sum()", "return weighted.sum()"),
    "rows that add nothing left out": ("reduce", "max(len(term), 1)", "(term != 0).sum().clamp(min=1)"),
    "silent terms counted as active": ("reduce", "keep & (term > 0)", "keep & (term >= 0)"),
    "margin added": ("pairs", "at_least_float32(sim) - pairs.margin", "at_least_float32(sim) + pairs.margin"),
    "weight of a triplet taken from its positive": ("mining", " * pairs.weight[anchor, negative]", ""),
    "easiest negative": ("mining", "-torch.inf).argmax(dim=1)", "torch.inf).argmin(dim=1)"),
    "easiest positive": ("mining", "torch.inf).argmin(dim=1)", "-torch.inf).argmax(dim=1)"),
    "semi-hard window open below": ("mining", "n_too_far.minimum(n_below)", "0 * n_below"),
    "semi-hard window open above": ("mining", "n_too_far.minimum(n_below), n_below)", "n_too_far, pairs.negative.sum(1)[anchor])"),
    "closest is farthest": ("mining", "(n_below - 1).clamp(min=0)", "0 * n_below"),
}  # fmt: skip


def mutated(source: str, changes: list[tuple[str, str]]) -> str:
    for old, new in changes:
        assert old in source, f"the mutant replaces {old!r}, which the source no longer has: write it anew"
        source = source.replace(old, new)
    return source


def executed(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def source_of(name: str) -> str:
    return inspect.getsource(sys.modules[f"kinfold.losses.{name}"])


def is_noticed(name: str, loss, **replaced) -> bool:
    """Compare a loss with its oracle in every setting and case."""
    for label, setting in SETTINGS.items():
        if label.split("-")[0] != name:
            continue
        settings = {**setting.loss.keywords, **replaced.get(label, {})}
        for case in CASES.values():
            expected = oracle_value(setting.oracle, case.sim, case.pairs)
            value = partial(loss, **settings)(case.sim, case.pairs).item()
            if value != pytest.approx(expected, rel=1e-6, abs=1e-9):
                return True
    return False


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_copy_without_a_mistake_passes(name):
    assert not is_noticed(name, getattr(executed("copy", source_of(name)), name))


@pytest.mark.parametrize(("name", "mistake"), [(name, mistake) for name, mutants in MUTANTS.items() for mistake in mutants])
def test_every_mistake_in_a_loss_is_noticed(name, mistake):
    source = mutated(source_of(name), MUTANTS[name][mistake])
    assert is_noticed(name, getattr(executed("mutant", source), name))


@pytest.mark.parametrize("mistake", SHARED_MUTANTS)
def test_every_mistake_in_what_losses_share_is_noticed_by_a_loss(mistake, monkeypatch):
    module, old, new = SHARED_MUTANTS[mistake]
    mutant = executed("mutant", mutated(inspect.getsource(CORE[module]), [(old, new)]))
    picks = {}
    if module == "mining":
        picks = {"triplet-batch-hard-soft": {"pick": mutant.batch_hard}, "triplet": {"pick": mutant.all_triplets}}
        picks["triplet-semi-hard"] = {"pick": partial(mutant.semi_hard, margin=0.3)}
        picks["triplet-closest"] = {"pick": partial(mutant.semi_hard, select="closest")}
    monkeypatch.setitem(sys.modules, f"kinfold.core.{module}", mutant)
    assert any(is_noticed(name, getattr(executed("copy", source_of(name)), name), **picks) for name in LOSSES)


def test_every_loss_has_mutants():
    assert set(MUTANTS) == set(LOSSES)
