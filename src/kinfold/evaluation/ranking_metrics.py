"""Ranks → one value for each query: the mean over all orders of ties, NaN where nothing is relevant."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.core.distinct import distinct
from kinfold.evaluation.rank_record import Ranks


def recall_at_k(ranks: Ranks, k: int) -> Float[Tensor, " n"]:
    """Return, for each query, the probability that a relevant item is among its k nearest (1 or 0 without ties).

    This is the recall@k of metric learning; information retrieval calls it the hit rate.

    Example:
        >>> from kinfold.evaluation.ranks import ranks
        >>> recall_at_k(ranks([[1.0]], [[1.0], [1.0], [0.5]], ["a"], ["a", "b", "a"], similarity="dot"), 1)
        tensor([0.5000], dtype=torch.float64)
    """
    best = ranks.best()
    one, case = _distinct_cases(best)
    above, tied, relevant = best.above[one], best.tied[one], best.relevant_tied[one]
    return _per_query(best, _hit(tied, relevant, torch.minimum((k - above).clamp_min(0), tied))[case])


def precision_at_k(ranks: Ranks, k: int) -> Float[Tensor, " n"]:
    """Return the expected share of relevant items among the k nearest; k is clipped to the query's number of candidates."""
    k_of_query = ranks.n_candidates.clamp_max(k)
    return _per_query(ranks, _inside(ranks, k_of_query[ranks.query])) / k_of_query


def r_precision(ranks: Ranks) -> Float[Tensor, " n"]:
    """Return the expected share of relevant items among the R nearest, R being the query's number of relevant items."""
    return _per_query(ranks, _inside(ranks, ranks.n_relevant[ranks.query])) / ranks.n_relevant


def map_at_r(ranks: Ranks) -> Float[Tensor, " n"]:
    """Return MAP@R: 1/R · Σ_{i ≤ R} precision(i) · relevant(i), R being the query's number of relevant items.

    Reference: Musgrave et al., A Metric Learning Reality Check, ECCV 2020.

    Example:
        >>> from kinfold.evaluation.ranks import ranks
        >>> map_at_r(ranks([[1.0]], [[3.0], [2.0], [1.0]], ["a"], ["a", "b", "a"], similarity="dot"))
        tensor([0.5000], dtype=torch.float64)
    """
    return _precision_sum(ranks, ranks.n_relevant[ranks.query]) / ranks.n_relevant


def average_precision(ranks: Ranks) -> Float[Tensor, " n"]:
    """Return the average precision over the full ranking: the mean of precision(i) over the ranks i of the relevant items."""
    return _precision_sum(ranks, ranks.n_candidates[ranks.query]) / ranks.n_relevant


def reciprocal_rank(ranks: Ranks) -> Float[Tensor, " n"]:
    """Return the expected value of 1 / (rank of the most alike relevant item)."""
    best = ranks.best()
    one, case = _distinct_cases(best)
    above, tied, relevant = best.above[one].double(), best.tied[one].double(), best.relevant_tied[one].double()
    value, still_none = torch.zeros_like(above), torch.ones_like(above)
    # The first relevant item of a group is at place t with probability (none before) · relevant / (items left).
    for t in range(int((tied - relevant).max()) + 1 if len(above) else 0):
        left = (tied - t).clamp_min(1)
        chance = still_none * (relevant / left).clamp_max(1)
        value += chance / (above + t + 1)
        still_none = still_none * ((left - relevant) / left).clamp_min(0)
    return _per_query(best, value[case])


def ndcg(ranks: Ranks) -> Float[Tensor, " n"]:
    """Return nDCG over the full ranking with gains 0 and 1: Σ 1 / log2(1 + rank) over relevant items, over its largest value."""
    n_places = int(torch.cat([ranks.n_candidates, ranks.n_relevant]).max()) + 1
    discount = 1 / torch.log2(torch.arange(n_places, dtype=torch.float64) + 2)
    total = torch.cat([discount.new_zeros(1), discount.cumsum(0)])
    mean = (total[ranks.above + ranks.tied] - total[ranks.above]) / ranks.tied
    gain = torch.where(ranks.tied == 1, discount[ranks.above], mean)
    return (_per_query(ranks, gain) / total[ranks.n_relevant]).clamp_max(1)


def _distinct_cases(best: Ranks) -> tuple[Int[Tensor, " u"], Int[Tensor, " t"]]:
    """Return one query for each combination of (above, tied, relevant tied), and the combination of every query."""
    case = torch.zeros_like(best.above)
    for number in (best.above, best.tied, best.relevant_tied):
        values, place, _ = distinct(number)
        _, case, _ = distinct(case * len(values) + place)
    n_cases = int(case.max()) + 1 if len(case) else 0
    return case.new_zeros(n_cases).scatter_(0, case, torch.arange(len(case))), case


def _per_query(ranks: Ranks, value: Float[Tensor, " t"]) -> Float[Tensor, " n"]:
    """Add the values of each query in rank order, in float64: the sum depends on nothing but the query."""
    total = torch.zeros(len(ranks.n_relevant), dtype=torch.float64).index_add_(0, ranks.query, value)
    return total.masked_fill(ranks.n_relevant == 0, torch.nan)


def _inside(ranks: Ranks, end: Int[Tensor, " t"]) -> Float[Tensor, " t"]:
    """Return the probability that an item is among the first `end`: its place in its tie group is equally likely anywhere."""
    return ((end - ranks.above).double() / ranks.tied).clamp(0, 1)


def _hit(tied: Int[Tensor, " u"], relevant: Int[Tensor, " u"], drawn: Int[Tensor, " u"]) -> Float[Tensor, " u"]:
    """Return the probability that `drawn` of `tied` items hold a relevant one: 1 - C(tied - relevant, drawn) / C(tied, drawn)."""
    few, many = torch.minimum(relevant, drawn), torch.maximum(relevant, drawn)
    miss = torch.ones(len(tied), dtype=torch.float64)
    for j in range(int(few.max()) if len(few) else 0):
        factor = (tied - many - j).clamp_min(0).double() / (tied - j).clamp_min(1)
        miss = torch.where(j < few, miss * factor, miss)
    # With one draw, or one relevant item, the fraction itself: 1 - (1 - p) would round.
    return torch.where(few == 1, many.double() / tied, 1 - miss)


def _precision_sum(ranks: Ranks, end: Int[Tensor, " t"]) -> Float[Tensor, " n"]:
    """Return Σ over relevant items of E[precision(p) · (p ≤ end)], p being the item's place.

    In a group of g items after A others, B of them relevant, an item at place p has on average B + (m - 1) (p - A - 1) / (g - 1) relevant
    items before it, m being the group's relevant items. The sum over places needs only harmonic numbers.
    """
    above, tied = ranks.above.double(), ranks.tied.double()
    last = torch.minimum(ranks.above + ranks.tied, end)
    n_places = int(torch.cat([ranks.n_candidates, ranks.n_relevant]).max()) + 1
    harmonic = torch.cat(
        [torch.zeros(1, dtype=torch.float64), (1 / torch.arange(1, n_places + 1, dtype=torch.float64)).cumsum(0)]
    )
    slope = torch.where(tied > 1, (ranks.relevant_tied - 1) / (tied - 1).clamp_min(1), 0)
    reached = torch.maximum(last, ranks.above)
    spread = (ranks.relevant_above + 1 - slope * (above + 1)) * (harmonic[reached] - harmonic[ranks.above])
    many = (spread + slope * (reached - ranks.above)) / tied
    one = (ranks.relevant_above + 1) / (above + 1)
    return _per_query(ranks, torch.where(tied > 1, many, one).masked_fill(last <= ranks.above, 0.0))
