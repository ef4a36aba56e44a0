"""What is minimised: one objective per file."""

from kinfold.objectives.hpl import HierarchicalProxies
from kinfold.objectives.pairwise import Pairwise
from kinfold.objectives.proxy import Proxies

OBJECTIVES = {
    "hpl": HierarchicalProxies,
    "pairwise": Pairwise,
    "proxy": Proxies,
}
