"""What is minimised: one objective per file."""

from kinfold.objectives.embedding_expansion import EmbeddingExpansion
from kinfold.objectives.hpl import HierarchicalProxies
from kinfold.objectives.l2a_nc import NovelClasses
from kinfold.objectives.pairwise import Pairwise
from kinfold.objectives.proxy import Proxies
from kinfold.objectives.proxy_synthesis import ProxySynthesis

OBJECTIVES = {
    "embedding_expansion": EmbeddingExpansion,
    "hpl": HierarchicalProxies,
    "l2a_nc": NovelClasses,
    "pairwise": Pairwise,
    "proxy": Proxies,
    "proxy_synthesis": ProxySynthesis,
}
