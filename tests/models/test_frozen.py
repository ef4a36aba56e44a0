"""A frozen part: it does not train, and the rest behind its kept outputs is the model."""

import copy

import pytest
import torch

from kinfold.errors import ConfigError
from kinfold.models.embedder import Embedder
from kinfold.models.frozen import Front, Rest

PARTS = [
    ("convnet", "trunk", "avg"),
    ("convnet", "blocks.1", "avg+max"),
    ("convnet", "trunk", "gem"),
    ("resnet10t", "layer2", "avg"),
]


def made(name: str, pool: str) -> Embedder:
    return Embedder(name, 8, size=32, pool=pool, pretrained=False).train()


@pytest.mark.parametrize(("name", "part", "pool"), PARTS)
def test_kept_outputs_and_the_rest_give_what_the_model_gives(name, part, pool):
    embedder = made(name, pool).freeze(part)
    front, rest, whole = Front(embedder, part), Rest(embedder, from_values=True), Rest(embedder, from_values=False)
    x = torch.randn(4, 3, 32, 32)
    # Batch statistics behind the cut must be of the same mode on both sides.
    for left, right in zip(rest(front(x)), whole(x), strict=True):
        assert torch.equal(left, right)


@pytest.mark.parametrize(("name", "part", "pool"), PARTS)
def test_training_changes_nothing_of_the_frozen_part(name, part, pool):
    embedder = made(name, pool).freeze(part)
    before = copy.deepcopy(embedder.state_dict())
    params = [p for group in embedder.parameter_groups() for p in group.params if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.1)
    for _ in range(2):
        embedder.train()
        embedder(torch.randn(4, 3, 32, 32))[1].square().sum().backward()
        optimizer.step()
    frozen = embedder.frozen_names()
    after = embedder.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in frozen)
    moved = {name for name in after if not torch.equal(before[name], after[name])}
    assert moved and not moved & frozen
    assert any(name.startswith("trunk") for name in moved) == (part != "trunk")


def test_freezing_nothing_frees_what_was_frozen():
    embedder = made("convnet", "avg").freeze("trunk").freeze(None)
    assert embedder.frozen is None and not embedder.frozen_names()
    assert all(p.requires_grad and module.training for module in embedder.modules() for p in module.parameters())


def test_the_state_of_the_rest_leaves_the_frozen_part_out_and_restores():
    embedder = made("convnet", "avg").freeze("blocks.1")
    rest = Rest(embedder, from_values=True)
    state = copy.deepcopy(rest.state_dict())
    assert set(state) == set(embedder.state_dict()) - embedder.frozen_names()
    with torch.no_grad():
        for p in embedder.parameters():
            p.add_(1.0)
    frozen = {name: embedder.state_dict()[name].clone() for name in embedder.frozen_names()}
    rest.load_state_dict(state)
    assert all(torch.equal(embedder.state_dict()[name], value) for name, value in {**state, **frozen}.items())


def test_the_fingerprint_follows_weights_and_part_but_not_the_head():
    first, second = made("convnet", "avg"), made("convnet", "avg")
    with torch.no_grad():
        second.head.linear.weight.zero_()
    assert Front(first, "trunk").fingerprint() == Front(second, "trunk").fingerprint()
    assert Front(first, "trunk").fingerprint() != Front(first, "blocks.1").fingerprint()
    assert Front(first, "trunk").fingerprint() != Front(made("convnet", "max"), "trunk").fingerprint()
    with torch.no_grad():
        first.trunk.module.blocks[0][2].running_mean[0] += 1e-6
    assert Front(first, "trunk").fingerprint() != Front(second, "trunk").fingerprint()


def test_an_unknown_block_names_the_nearest():
    with pytest.raises(ConfigError, match=r"did you mean `blocks.1`"):
        made("convnet", "avg").freeze("block.1")


def test_a_copy_of_a_frozen_model_is_a_model_of_its_own():
    embedder = made("convnet", "avg").freeze("blocks.1")
    twin = copy.deepcopy(embedder)
    with torch.no_grad():
        twin.trunk.module.blocks[0][0].weight.zero_()
    assert embedder.trunk.module.blocks[0][0].weight.any()
    assert twin.frozen_names() == embedder.frozen_names()
