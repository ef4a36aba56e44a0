"""Seeds by content."""

from kinfold.data.seeding import stable_seed


def test_seeds_are_the_same_on_every_machine():
    assert stable_seed(1, 2, 3, 4) == 15195315728730727403
    grid = {stable_seed(a, b, c, d) for a in range(4) for b in range(4) for c in range(4) for d in range(4)}
    assert len(grid) == 256
