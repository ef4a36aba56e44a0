"""The embedder."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from kinfold.errors import ConfigError, DataError
from kinfold.images.preprocessing import Preprocessing
from kinfold.models.embedder import Embedder
from kinfold.models.trunks import trunk


@pytest.fixture
def pictures():
    random = np.random.default_rng(0)
    return [random.integers(0, 256, (40 + i, 50, 3), dtype=np.uint8) for i in range(7)]


@pytest.fixture
def embedder():
    return Embedder("convnet", dim=16)


@pytest.mark.parametrize("pool", ["avg", "max", "avg+max", "gem"])
@pytest.mark.parametrize(("name", "n_features"), [("convnet", 128), ("resnet18", 512), ("test_convnext", 64)])
def test_maps_are_pooled_every_way(name, n_features, pool):
    embedder = Embedder(name, 16, pool=pool, size=32, pretrained=False)
    feature, embedding = embedder(torch.randn(2, 3, 32, 32))
    assert (feature.shape, embedding.shape) == ((2, n_features), (2, 16))
    pooled = embedder.pool(embedder.trunk(torch.zeros(2, 3, 32, 32)))
    assert pooled.shape == (2, n_features)


def test_the_embedding_is_the_head_of_the_feature_and_is_not_normalised(embedder):
    feature, embedding = embedder.eval()(torch.randn(2, 3, 32, 32))
    torch.testing.assert_close(embedding, embedder.head(feature))
    assert ((embedding.norm(dim=1) - 1).abs() > 0.01).all()


def test_without_a_head_the_feature_is_the_embedding():
    embedder = Embedder("convnet", None)
    feature, embedding = embedder(torch.randn(2, 3, 32, 32))
    assert torch.equal(feature, embedding)
    assert embedder.dim == 128
    assert [group.name for group in embedder.parameter_groups()] == ["trunk"]


def test_transformers_pool_themselves():
    embedder = Embedder("test_vit", dim=8, pretrained=False)
    assert embedder(torch.randn(2, 3, 160, 160))[0].shape == (2, 64)
    assert embedder.parameter_groups()[1].params == list(embedder.head.parameters())
    with pytest.raises(ConfigError, match="`gem` has nothing to pool"):
        Embedder("test_vit", pool="gem", pretrained=False)


def test_the_trunks_own_pooling_can_be_chosen():
    assert not Embedder("resnet18", pool="trunk", pretrained=False, size=32).trunk.gives_map
    with pytest.raises(ConfigError, match="gives feature maps"):
        Embedder("convnet", pool="trunk")


@pytest.mark.parametrize("pool", ["avg", "gem"])
def test_every_parameter_is_in_exactly_one_group(pool):
    embedder = Embedder("convnet", pool=pool)
    groups = {group.name: group.params for group in embedder.parameter_groups()}
    names = {id(p): name for name, p in embedder.named_parameters()}
    assert sorted(names[id(p)] for params in groups.values() for p in params) == sorted(names.values())
    assert all(names[id(p)].startswith("trunk.") for p in groups["trunk"])
    assert ("pool.p" in [names[id(p)] for p in groups["head"]]) == (pool == "gem")


@pytest.mark.parametrize("dim", [0, -1, 2.0, True, "128"])
def test_dim_is_a_positive_whole_number(dim):
    with pytest.raises(ConfigError, match="`dim` is"):
        Embedder("convnet", dim)


def test_settings_that_are_misspelt_or_contradict_each_other_are_refused():
    with pytest.raises(ConfigError, match=r"`pool` is 'gen': did you mean `gem`"):
        Embedder("convnet", pool="gen")
    with pytest.raises(ConfigError, match="layer_norm"):
        Embedder("convnet", None, layer_norm=True)


def test_the_seed_decides_the_weights_and_leaves_the_global_random_state_alone():
    before = torch.random.get_rng_state()
    first, again, other = (Embedder("convnet", 16, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(3)
    later = Embedder("convnet", 16, seed=0)
    assert first.fingerprint() == again.fingerprint() == later.fingerprint() != other.fingerprint()
    assert not torch.equal(first.head.linear.weight, other.head.linear.weight)
    assert not torch.equal(first.trunk.module.blocks[0][0].weight, other.trunk.module.blocks[0][0].weight)


def test_timm_weights_follow_the_seed_too():
    first, again = (Embedder("test_resnet", 4, pretrained=False, seed=3).fingerprint() for _ in range(2))
    assert first == again


def test_rows_keep_the_order_and_do_not_depend_on_the_batch_size(embedder, pictures):
    whole = embedder.embed(pictures)
    assert whole.shape == (7, 16)
    assert whole.dtype == torch.float32
    for batch_size in (1, 2, 3, 7):
        torch.testing.assert_close(embedder.embed(pictures, batch_size=batch_size), whole, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(embedder.embed(pictures[::-1]), whole.flip(0), rtol=1e-4, atol=1e-5)
    assert (torch.pdist(whole) > 1e-2).all()


def test_embed_is_preprocessing_and_forward_in_evaluation_mode(embedder, pictures):
    images = torch.stack([embedder.preprocessing(Image.fromarray(picture)) for picture in pictures])
    expected = embedder.eval()(images)[1]
    torch.testing.assert_close(embedder.train().embed(pictures), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(embedder.embed(images), expected, rtol=1e-4, atol=1e-5)


def test_embed_gives_back_every_mode_and_counts_nothing(embedder, pictures):
    embedder.train()
    embedder.trunk.module.blocks[0][2].eval()
    modes = [part.training for part in embedder.modules()]
    print_before = embedder.fingerprint()
    assert not embedder.embed(pictures).requires_grad
    assert [part.training for part in embedder.modules()] == modes
    assert embedder.fingerprint() == print_before
    with pytest.raises(DataError):
        embedder.embed(["nowhere.png"])
    assert [part.training for part in embedder.modules()] == modes
    assert torch.is_grad_enabled()


def test_no_image_gives_no_row_and_one_image_gives_one(embedder, pictures):
    assert embedder.embed([]).shape == (0, 16)
    assert embedder.embed(pictures[0]).shape == (1, 16)
    assert embedder.embed(Image.fromarray(pictures[0])).shape == (1, 16)


def test_a_broken_image_is_named_with_its_position(embedder, pictures, tmp_path):
    broken = tmp_path / "cut.jpg"
    Image.fromarray(pictures[0]).save(broken)
    broken.write_bytes(broken.read_bytes()[:200])
    with pytest.raises(DataError, match=r"image 2 of 3: .*cut\.jpg"):
        embedder.embed([pictures[0], broken, pictures[1]])


def test_bf16_is_float32_to_two_digits(embedder, pictures):
    exact = embedder.embed(pictures)
    fast = embedder.embed(pictures, precision="bf16-mixed")
    assert fast.dtype == torch.float32
    assert not torch.equal(fast, exact)
    assert (fast - exact).norm() < 0.03 * exact.norm()
    with pytest.raises(ConfigError, match="`precision` is 'bf16'"):
        embedder.embed(pictures, precision="bf16")


def test_a_model_in_bfloat16_takes_images_as_well(embedder, pictures):
    assert embedder.to(torch.bfloat16).embed(pictures).dtype == torch.float32


def test_progress_hears_how_many_images_are_done(embedder, pictures):
    heard = []
    embedder.embed(pictures, batch_size=3, progress=heard.append, device="cpu")
    assert heard == [3, 6, 7]


def test_the_fingerprint_covers_weights_settings_and_preprocessing(embedder):
    prints = [embedder.fingerprint()]
    with torch.no_grad():
        embedder.head.linear.bias[3] += 1e-6
    prints.append(embedder.fingerprint())
    embedder.preprocessing = Preprocessing(size=32, resize="squash")
    prints += [
        embedder.fingerprint(),
        Embedder("convnet", 16, pool="max").fingerprint(),
        Embedder("convnet", 16, layer_norm=True).fingerprint(),
    ]
    assert len(set(prints)) == 5


def test_own_modules_and_made_trunks_are_taken():
    made = trunk("convnet", preprocessing=Preprocessing(size=48, resize="squash"))
    assert Embedder(made).preprocessing.resize == "squash"
    own = Embedder(nn.Conv2d(3, 9, 3), dim=4, size=12)
    assert own.embed(np.zeros((20, 20, 3), np.uint8)).shape == (1, 4)
    assert own.trunk.n_features == 9


def test_importing_it_imports_neither_timm_nor_torchvision():
    code = "import sys, kinfold.models.embedder; print(sorted({'timm', 'torchvision', 'safetensors.torch'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
