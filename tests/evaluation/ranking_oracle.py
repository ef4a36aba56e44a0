"""Ranking metrics from their definitions: plain loops over every order of the tied items; imports nothing from kinfold."""

from fractions import Fraction
from itertools import groupby, permutations, product
from math import log2


def orders(sims):
    """Yield every ranking of the items 0 … m-1 that respects the similarities, equal ones in any order."""
    items = sorted(range(len(sims)), key=lambda j: -sims[j])
    groups = [list(group) for _, group in groupby(items, key=lambda j: sims[j])]
    for choice in product(*(permutations(group) for group in groups)):
        yield [item for group in choice for item in group]


def metric(name, relevant):
    """Return one metric of one ranking, given as a list of 0 and 1."""
    n_relevant = sum(relevant)
    if name.startswith("recall_at_"):
        return Fraction(int(any(relevant[: int(name[10:])])))
    if name.startswith("precision_at_"):
        k = min(int(name[13:]), len(relevant))
        return Fraction(sum(relevant[:k]), k)
    if name == "r_precision":
        return Fraction(sum(relevant[:n_relevant]), n_relevant)
    if name == "mrr":
        return Fraction(1, relevant.index(1) + 1)
    if name in ("map", "map_at_r"):
        end = n_relevant if name == "map_at_r" else len(relevant)
        return sum((Fraction(sum(relevant[: i + 1]), i + 1) for i in range(end) if relevant[i]), Fraction(0)) / n_relevant
    if name == "ndcg":
        gain = sum(1 / log2(i + 2) for i in range(len(relevant)) if relevant[i])
        return gain / sum(1 / log2(i + 2) for i in range(n_relevant))
    raise ValueError(name)


def expected(name, sims, relevant):
    """Return the mean of a metric over all orders of ties, or None without a relevant item."""
    if not any(relevant):
        return None
    values = [metric(name, [int(relevant[j]) for j in order]) for order in orders(sims)]
    return float(sum(values) / len(values))
