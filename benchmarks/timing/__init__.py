"""How the benchmarks time: candidates in turn, ratios within a round."""

import statistics
import time
from collections.abc import Callable


def timed(function: Callable[[], object]) -> float:
    """Return the milliseconds of one call."""
    begin = time.perf_counter()
    function()
    return 1000 * (time.perf_counter() - begin)


def in_turn(candidates: dict[str, Callable[[], object]], n_rounds: int) -> dict[str, list[float]]:
    """Time all candidates one after the other in each round; the first round warms up."""
    spent: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(n_rounds + 1):
        for name, function in candidates.items():
            milliseconds = timed(function)
            if number:
                spent[name].append(milliseconds)
    return spent


def ratio(spent: dict[str, list[float]], one: str, other: str) -> float:
    """Return the median over rounds of one candidate's time divided by another's."""
    return statistics.median(a / b for a, b in zip(spent[one], spent[other], strict=True))
