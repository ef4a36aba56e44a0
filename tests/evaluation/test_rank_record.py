import torch

from kinfold.evaluation.rank_record import Ranks, join


def record(query, above, n_relevant):
    query, above, n_relevant = torch.tensor(query), torch.tensor(above), torch.tensor(n_relevant)
    one = torch.ones_like(query)
    return Ranks(query, above, one, above * 0, one, n_relevant, n_relevant + 5)


def test_joined_blocks_are_renumbered_and_put_into_row_order():
    joined = join([record([0, 0, 1], [1, 4, 2], [2, 1]), record([1], [7], [0, 1])])
    assert joined.query.tolist() == [0, 0, 1, 3]
    ordered = joined.in_rows(torch.tensor([2, 0, 3, 1]))
    assert ordered.query.tolist() == [0, 1, 2, 2]
    assert ordered.above.tolist() == [2, 7, 1, 4]
    assert ordered.n_relevant.tolist() == [1, 1, 2, 0]
    assert ordered.n_candidates.tolist() == [6, 6, 7, 5]
    assert ordered.best().above.tolist() == [2, 7, 1]
