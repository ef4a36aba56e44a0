"""How many similarities lie at each of many thresholds, and between each and the next, tile after tile."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

SHARE_OF_MEMORY = 4


class CountBetween:
    """Counts by thresholds; both ways of counting give the same integers.

    Similarities on a grid of steps in [-1, 1] are counted step by step, where the budget has room for all steps; any others find their
    place among the thresholds by a binary search, which is several times slower.

    Args:
        threshold: ascending and distinct; on the grid, if there is one.
        step: of the grid, or `None`.
        memory: budget in bytes.
    """

    def __init__(self, threshold: Float[Tensor, " t"], *, step: float | None, memory: int):
        self.threshold, self._step = threshold, step
        self.by_step = step is not None and _n_steps(step) * 8 * SHARE_OF_MEMORY <= memory
        if self.by_step:
            n_bins = _n_steps(step)
        else:
            # One edge at each threshold and one just above it: what lies between the two is equal to the threshold.
            self._edges = torch.stack([threshold, torch.nextafter(threshold, torch.full_like(threshold, torch.inf))], 1).flatten()
            n_bins = len(self._edges) + 1
        self._count = torch.zeros(n_bins, dtype=torch.long, device=threshold.device)

    def add(self, sim: Float[Tensor, "r c"]) -> None:
        """Count the entries of one more tile; -inf counts nowhere."""
        place = self._place(sim) if self.by_step else torch.searchsorted(self._edges, sim.contiguous(), right=True)
        self._count.scatter_add_(0, place.flatten(), torch.ones_like(self._count[:1]).expand(place.numel()))

    def result(self) -> tuple[Int[Tensor, " t"], Int[Tensor, " t"]]:
        """Return how many similarities equal each threshold, and how many lie above it and below the next."""
        if not self.by_step:
            return self._count[1::2], self._count[2::2]
        at = self._place(self.threshold)
        below = self._count.cumsum(0)
        end = torch.cat([below[at[1:] - 1], below[-1:]])
        return self._count[at], end - below[at]

    def _place(self, sim: Tensor) -> Tensor:
        """Return the bin of each similarity: 0 for -inf, 1 for -1, 2 for the next step, and so on."""
        assert self._step is not None
        return sim.div(self._step).add_(1 / self._step + 1).clamp_(min=0).long()


def _n_steps(step: float | None) -> int:
    return 0 if step is None else round(2 / step) + 2
