"""What is minimised: one objective per file."""

from kinfold.objectives.pairwise import Pairwise
from kinfold.objectives.proxy import Proxies

OBJECTIVES = {
    "pairwise": Pairwise,
    "proxy": Proxies,
}
