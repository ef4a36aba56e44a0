"""One coarse level of hierarchical proxies: its vectors, and whose parents they are."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from kinfold.core.clustering import assign, centres_of, recentre, refill


class CoarseLevel(nn.Module):
    """The proxies of one level (P_l) and the parent of each proxy below (Q_{l-1}): buffers, so no gradient reaches them.

    Attributes:
        proxies: (k, d).
        parent: (n_below,), the number of each lower proxy's group.
        n_moved: how many lower proxies changed their group at the last refresh.
    """

    proxies: Tensor
    parent: Tensor
    n_moved: Tensor

    def __init__(self, size: int, n_below: int, dim: int):
        super().__init__()
        self.register_buffer("proxies", torch.zeros(size, dim))
        self.register_buffer("parent", torch.zeros(n_below, dtype=torch.long))
        self.register_buffer("n_moved", torch.tensor(0))

    def place(self, below: Float[Tensor, "c d"], parent: Int[Tensor, " c"], *, unit: bool) -> None:
        """Take these parents, and the centres of their members as proxies."""
        self.n_moved.fill_((parent != self.parent).sum())
        self.parent.copy_(parent)
        self.proxies.copy_(centres_of(below, parent, len(self.proxies), unit=unit))

    def follow(self, below: Float[Tensor, "c d"], *, moves: bool, refills: bool, unit: bool) -> None:
        """Assign lower proxies to the nearest proxy here if they may move, then move the proxies here to their means."""
        centre = self.proxies.to(below.dtype)
        if moves:
            parent = assign(below, centre)
            if refills:
                parent, centre = refill(below, parent, centre, unit=unit)
            self.n_moved.fill_((parent != self.parent).sum())
            self.parent.copy_(parent)
        self.proxies.copy_(recentre(below, self.parent, centre, unit=unit))
