"""A search and a list of metrics → one value of each metric for each query."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from kinfold.errors import DataError
from kinfold.evaluation.metric_names import NEEDS_BEST, Metric, depth_of
from kinfold.evaluation.rank_record import Ranks
from kinfold.evaluation.search import Search
from kinfold.evaluation.typed import integers

EMPTY_VALUE = {"neg": 0.0, "pos": 1.0}


def query_values(search: Search, metrics: list[Metric]) -> tuple[dict[str, Float[Tensor, " n"]], Int[Tensor, " n"]]:
    """Return the values of ranking metrics (NaN where nothing is relevant) and the number of relevant items, by query row.

    Only the best rank of each query is kept from block to block; the other metrics are computed while a block's ranks are there. What
    is kept is written into arrays made beforehand: small ones made in between would pin the blocks' freed memory in pieces.
    """
    n = len(search.query_order)
    of_best = [metric for metric in metrics if metric.family in NEEDS_BEST]
    of_block = [metric for metric in metrics if metric.family not in NEEDS_BEST]
    numbers, totals = torch.empty((5, n), dtype=torch.long), torch.empty((2, n), dtype=torch.long)
    value = {metric.name: torch.empty(n, dtype=torch.float64) for metric in of_block}
    n_found = n_done = 0
    for ranks in search.ranks(depth_of(metrics)):
        best = ranks.best()
        found = slice(n_found, n_found + len(best.query))
        done = slice(n_done, n_done + len(ranks.n_relevant))
        for i, entry in enumerate((best.query + n_done, best.above, best.tied, best.relevant_above, best.relevant_tied)):
            numbers[i, found] = entry
        totals[0, done], totals[1, done] = ranks.n_relevant, ranks.n_candidates
        for metric in of_block:
            value[metric.name][done] = metric.of(ranks)
        n_found, n_done = found.stop, done.stop
    query, above, tied, relevant_above, relevant_tied = numbers[:, :n_found]
    joined = Ranks(query, above, tied, relevant_above, relevant_tied, totals[0], totals[1])
    value |= {metric.name: metric.of(joined) for metric in of_best}
    place = search.query_order.argsort()
    return {metric.name: value[metric.name][place] for metric in metrics}, joined.n_relevant[place]


def treat_empty(
    value: dict[str, Float[Tensor, " n"]], n_relevant: Int[Tensor, " n"], empty: str
) -> tuple[dict[str, Float[Tensor, " s"]], Int[Tensor, " s"], Int[Tensor, " u"]]:
    """Apply the rule for queries without a relevant item; return values, rows that count, and rows without a relevant item.

    Raises:
        DataError: there are such queries and the rule is `error`, or there is no other query.
    """
    skipped = (n_relevant == 0).nonzero().flatten()
    shown = ", ".join(map(str, integers(skipped[:10]))) + (", …" if len(skipped) > 10 else "")
    if len(skipped) and empty == "error":
        raise DataError(
            f"{len(skipped)} of {len(n_relevant)} queries have no relevant item: rows {shown}. empty='skip' leaves them out."
        )
    if empty in EMPTY_VALUE:
        return {name: x.nan_to_num(nan=EMPTY_VALUE[empty]) for name, x in value.items()}, torch.arange(len(n_relevant)), skipped
    query = (n_relevant > 0).nonzero().flatten()
    if not len(query):
        raise DataError(
            f"none of the {len(n_relevant)} queries has a relevant item to find: every label occurs once, or query and gallery share none."
        )
    return {name: x[query] for name, x in value.items()}, query, skipped
