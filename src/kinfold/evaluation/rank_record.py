"""The record of exact ranks that every ranking metric is computed from."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True)
class Ranks:
    """Where each relevant item stands in the list of its query; everything that a ranking metric needs.

    Items tie when they lie within 4 machine epsilons of the group's most alike relevant item (relative to 1 for cosine, else to
    the query's largest |similarity| to a relevant item); the order inside a group is then left open, and metrics take the mean over
    all orders. All numbers are exact counts over the whole gallery, without the excluded items.

    Attributes:
        query: row of the query, ascending; its relevant items follow each other, most alike first.
        above: how many items are ranked before the item's tie group.
        tied: size of the tie group, the item itself included.
        relevant_above: how many relevant items are ranked before the group.
        relevant_tied: how many relevant items the group holds, the item itself included.
        n_relevant: relevant items of each query.
        n_candidates: gallery items that each query may find.
    """

    query: Int[Tensor, " t"]
    above: Int[Tensor, " t"]
    tied: Int[Tensor, " t"]
    relevant_above: Int[Tensor, " t"]
    relevant_tied: Int[Tensor, " t"]
    n_relevant: Int[Tensor, " n"]
    n_candidates: Int[Tensor, " n"]

    def best(self) -> "Ranks":
        """Return the same record with the most alike relevant item of each query only."""
        first = torch.ones_like(self.query, dtype=torch.bool)
        first[1:] = self.query[1:] != self.query[:-1]
        return self._entries(first, self.query)

    def in_rows(self, row: Int[Tensor, " n"]) -> "Ranks":
        """Return the same record with query i called `row[i]`, sorted again; `row` is a permutation."""
        order = row[self.query].argsort(stable=True)
        place = row.argsort()
        return replace(
            self._entries(order, row[self.query]), n_relevant=self.n_relevant[place], n_candidates=self.n_candidates[place]
        )

    def _entries(self, which: Tensor, query: Int[Tensor, " t"]) -> "Ranks":
        return Ranks(
            query=query[which],
            above=self.above[which],
            tied=self.tied[which],
            relevant_above=self.relevant_above[which],
            relevant_tied=self.relevant_tied[which],
            n_relevant=self.n_relevant,
            n_candidates=self.n_candidates,
        )


def join(parts: list[Ranks]) -> Ranks:
    """Return the record of several blocks of queries, one after the other."""
    offset, query = 0, list[Tensor]()
    for part in parts:
        query.append(part.query + offset)
        offset += len(part.n_relevant)
    return Ranks(
        torch.cat(query),
        torch.cat([part.above for part in parts]),
        torch.cat([part.tied for part in parts]),
        torch.cat([part.relevant_above for part in parts]),
        torch.cat([part.relevant_tied for part in parts]),
        torch.cat([part.n_relevant for part in parts]),
        torch.cat([part.n_candidates for part in parts]),
    )
