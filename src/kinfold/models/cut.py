"""Cutting a network behind one of its blocks: what comes before, and what comes after."""

from typing import Any

from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node, Tracer

from kinfold.errors import ConfigError, did_you_mean


def cut(module: nn.Module, block: str) -> tuple[nn.Module, nn.Module]:
    """Return the part of a network up to and including a block, and the part behind it: behind(front(x)) equals module(x), to the bit.

    Both share the network's parameters and modules. Only the forward functions of what contains the block are traced; every other
    module is taken as it is, whatever it does inside.

    Args:
        module: one tensor in, one tensor out.
        block: the dotted name of a module in it, such as `blocks.4` or `layer3`.

    Raises:
        ConfigError: there is no such block, the network cannot be traced, or something behind the block uses more than its output.

    Example:
        >>> import torch
        >>> layers = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        >>> front, behind = cut(layers, "1")
        >>> x = torch.ones(1, 2)
        >>> bool(behind(front(x)) == layers(x))
        True
    """
    _check_block(module, block)
    whole = _OneInput(module)
    graph = _graph(whole, block)
    at = _only_use(graph, block)
    nodes = list(graph.nodes)
    place = nodes.index(at)
    front, behind = Graph(), Graph()
    copied: dict[Node, Node] = {}
    for node in nodes[: place + 1]:
        copied[node] = front.node_copy(node, lambda each: copied[each])
    front.output(copied[at])
    copied = {at: behind.placeholder("x")}
    for node in nodes[place + 1 :]:
        copied[node] = behind.node_copy(node, lambda each: _behind(each, copied, behind, block))
    return GraphModule(whole, front), GraphModule(whole, behind)


class _OneInput(nn.Module):
    """The network called with images alone, so that its optional arguments are constants and not inputs."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)


class _Outline(Tracer):
    """Follows only the modules that contain the block."""

    def __init__(self, block: str):
        super().__init__()
        parts = ["network", *block.split(".")]
        self.containers = {".".join(parts[:end]) for end in range(len(parts))}

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Take everything but the containers as it is."""
        del m
        return module_qualified_name not in self.containers


def _check_block(module: nn.Module, block: str) -> None:
    known = [name for name, _ in module.named_modules() if name]
    if block not in known:
        shallow = [name for name in known if name.count(".") <= 1]
        raise ConfigError(f"the network has no block `{block}`: {did_you_mean(block, shallow)}")


def _graph(whole: nn.Module, block: str) -> Graph:
    try:
        return _Outline(block).trace(whole)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(
            f"the network cannot be cut behind `{block}`: {reason} Name a block of another level, or freeze the whole `trunk`."
        ) from error


def _only_use(graph: Graph, block: str) -> Node:
    uses = [node for node in graph.nodes if node.op == "call_module" and node.target == f"network.{block}"]
    if len(uses) != 1:
        raise ConfigError(
            f"the network cannot be cut behind `{block}`: it is used {len(uses)} times in a pass. Name another block."
        )
    return uses[0]


def _behind(node: Node, copied: dict[Node, Node], behind: Graph, block: str) -> Any:
    if node not in copied:
        if node.op != "get_attr":  # a parameter can be read again; anything computed cannot
            raise ConfigError(
                f"the network cannot be cut behind `{block}`: what follows also uses `{node}`, from before it. Name another block."
            )
        copied[node] = behind.node_copy(node)
    return copied[node]
