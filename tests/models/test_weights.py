"""Models on disk."""

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from kinfold.errors import ConfigError, DataError
from kinfold.images.preprocessing import Preprocessing
from kinfold.models.embedder import Embedder

FILES = ["README.md", "config.json", "labels.json", "model.safetensors"]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 3, 3, padding=1)
        self.second = nn.Conv2d(3, 3, 3, padding=1)
        self.second.weight = self.first.weight

    def forward(self, images):
        return self.second(self.first(images))


class Renamed(Tied):
    """The same network under another name."""


@pytest.fixture
def pictures():
    return list(np.random.default_rng(0).integers(0, 256, (3, 40, 50, 3), dtype=np.uint8))


@pytest.fixture
def trained():
    embedder = Embedder("convnet", dim=8, pool="gem", seed=5)
    embedder.preprocessing = Preprocessing(size=32, resize="squash")
    embedder.classes = ["b", "a", "1"]
    with torch.no_grad():
        embedder(torch.randn(8, 3, 32, 32))  # moves the running statistics
        embedder.pool.p.fill_(2.5)
    return embedder


@pytest.fixture
def folder(trained, tmp_path):
    trained.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def edit(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def edit_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def test_a_loaded_model_embeds_bit_by_bit_as_the_saved_one(trained, folder, pictures):
    loaded = Embedder.from_pretrained(folder)
    assert torch.equal(loaded.embed(pictures), trained.embed(pictures))
    assert loaded.fingerprint() == trained.fingerprint()
    assert loaded.classes == ["b", "a", "1"]
    assert loaded.preprocessing == trained.preprocessing
    assert loaded.dim == 8
    assert not loaded.training
    assert sorted(path.name for path in folder.iterdir()) == FILES


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("resnet18", {"pool": "avg+max", "size": 64}),
        ("resnet18", {"pool": "trunk", "size": 64}),
        ("test_vit", {"size": 96, "layer_norm": True}),
        ("test_convnext", {"dim": None, "size": 64}),
    ],
)
def test_timm_models_come_back_with_all_their_settings(name, settings, tmp_path, pictures):
    saved = Embedder(name, pretrained=False, **settings)
    saved.save_pretrained(tmp_path)
    before = torch.random.get_rng_state()
    loaded = Embedder.from_pretrained(str(tmp_path))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(loaded.embed(pictures), saved.embed(pictures))
    assert loaded.fingerprint() == saved.fingerprint()


def test_saving_changes_nothing_of_the_model_and_saves_the_same_bytes_again(trained, folder, tmp_path):
    trained.train()
    before = trained.fingerprint()
    trained.save_pretrained(tmp_path / "again")
    assert trained.training
    assert trained.fingerprint() == before
    assert trained.trunk.module.blocks[1][0].weight.is_contiguous(memory_format=torch.channels_last)
    for name in FILES:
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_neither_saving_nor_loading_touches_pickle_or_the_network(trained, tmp_path, monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("must not be used")

    for owner, name in ((pickle, "loads"), (pickle, "load"), (pickle, "Unpickler"), (torch, "load"), (torch, "save")):
        monkeypatch.setattr(owner, name, forbidden)
    monkeypatch.setattr("socket.socket.connect", forbidden)
    trained.save_pretrained(tmp_path)
    Embedder.from_pretrained(tmp_path)


@pytest.mark.parametrize("classes", [["1", "02", "ü"], [1, 2, 2**63 + 1], [2**53 + 1, -5], [], None])
def test_class_names_come_back_exactly(trained, tmp_path, classes):
    trained.classes = classes
    trained.save_pretrained(tmp_path)
    loaded = Embedder.from_pretrained(tmp_path).classes
    assert loaded == classes
    assert [type(name) for name in loaded or []] == [type(name) for name in classes or []]


def test_changed_weights_are_refused(folder):
    def change(tensors):
        tensors["head.linear.bias"][0] += 1e-3

    edit_tensors(folder, change)
    with pytest.raises(DataError, match="fingerprint differs"):
        Embedder.from_pretrained(folder)


@pytest.mark.parametrize(
    "changes", [{"pool": "avg"}, {"layer_norm": True}, {"preprocessing": {"size": 32}}, {"fingerprint": "0" * 64}]
)
def test_changed_settings_are_refused(folder, changes):
    edit(folder, **changes)
    with pytest.raises(DataError, match=r"fingerprint|unknown"):
        Embedder.from_pretrained(folder)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"pools": "gem"}, ConfigError, r"config.json.*`pools` is not known: did you mean `pool`"),
        ({"pool": "gen"}, ConfigError, "did you mean `gem`"),
        ({"dim": 16}, DataError, r"`head.linear.bias` is \(8,\) torch.float32, but the configuration asks for \(16,\)"),
        ({"dim": -1}, ConfigError, "`dim` is -1"),
        ({"dim": "many"}, ConfigError, "`dim`"),
        ({"preprocessing": {"sise": 32}}, ConfigError, "did you mean `size`"),
        ({"format_version": 2, "something": "new"}, DataError, "format 2, this Kinfold reads up to 1"),
        ({"format_version": None}, ConfigError, "no Kinfold model"),
        (
            {"trunk": {"name": "convent", "is_custom": False, "size": 32, "n_features": 128}},
            ConfigError,
            "did you mean `convnet`",
        ),
        ({"trunk": {"name": "hf-hub:a/b", "is_custom": False, "size": 32, "n_features": 128}}, ConfigError, "is not known"),
        ({"trunk": {"name": "convnet", "is_custom": False, "size": 32, "n_features": 64}}, ConfigError, "not the 64 expected"),
        ({"trunk": {"name": "convnet", "is_custom": False, "size": 32}}, ConfigError, "`trunk.n_features` is missing"),
    ],
)
def test_wrong_settings_are_one_clear_error_each(folder, changes, error, message):
    edit(folder, **changes)
    with pytest.raises(error, match=message):
        Embedder.from_pretrained(folder)


@pytest.mark.parametrize("name", ["config.json", "labels.json", "model.safetensors"])
def test_a_missing_or_broken_file_is_named(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=f"{name}' is broken"):
        Embedder.from_pretrained(folder)
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"lacks {name}"):
        Embedder.from_pretrained(folder)


def test_json_of_another_kind_is_refused(folder):
    (folder / "labels.json").write_text('["a"]')
    with pytest.raises(DataError, match="one JSON object"):
        Embedder.from_pretrained(folder)
    (folder / "labels.json").write_text('{"labels": ["a"]}')
    with pytest.raises(DataError, match="must hold `classes`"):
        Embedder.from_pretrained(folder)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere' does not exist"):
        Embedder.from_pretrained(tmp_path / "nowhere")


def test_tensors_that_lack_or_are_too_many_are_named(folder):
    edit_tensors(folder, lambda tensors: tensors.update(extra=torch.zeros(1)))
    with pytest.raises(DataError, match="have unknown 1 tensors, such as `extra`"):
        Embedder.from_pretrained(folder)
    edit_tensors(folder, lambda tensors: (tensors.pop("extra"), tensors.pop("pool.p")))
    with pytest.raises(DataError, match=r"lack 1 tensors, such as `pool\.p`"):
        Embedder.from_pretrained(folder)


def test_an_own_module_is_saved_and_must_be_given_again(tmp_path, pictures):
    saved = Embedder(Tied(), dim=4, size=16)
    saved.save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match=r"from_pretrained\(folder, trunk=Tied"):
        Embedder.from_pretrained(tmp_path)
    loaded = Embedder.from_pretrained(tmp_path, trunk=Renamed())
    assert torch.equal(loaded.embed(pictures), saved.embed(pictures))
    assert loaded.fingerprint() == saved.fingerprint()
    assert loaded.trunk.module.first.weight is loaded.trunk.module.second.weight
    with pytest.raises((ConfigError, DataError), match=r"3 expected|another architecture"):
        Embedder.from_pretrained(tmp_path, trunk=nn.Conv2d(3, 5, 3))


def test_a_module_is_not_taken_where_a_name_makes_the_trunk(folder):
    with pytest.raises(ConfigError, match="leave `trunk=` out"):
        Embedder.from_pretrained(folder, trunk=nn.Conv2d(3, 5, 3))


def test_a_model_in_another_precision_comes_back_in_it(tmp_path, pictures):
    saved = Embedder("convnet", dim=4).to(torch.bfloat16)
    saved.save_pretrained(tmp_path)
    loaded = Embedder.from_pretrained(tmp_path)
    assert loaded.head.linear.weight.dtype == torch.bfloat16
    assert loaded.fingerprint() == saved.fingerprint()
    assert torch.equal(loaded.embed(pictures), saved.embed(pictures))


def test_mixed_precision_weights_are_refused_when_saving(trained, tmp_path):
    trained.head.to(torch.bfloat16)
    with pytest.raises(ConfigError, match="mixes"):
        trained.save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_saving_over_a_model_replaces_it_and_leaves_other_files(folder):
    (folder / "notes.txt").write_text("mine")
    other = Embedder("convnet", dim=4, seed=9)
    other.save_pretrained(folder)
    loaded = Embedder.from_pretrained(folder)
    assert loaded.fingerprint() == other.fingerprint()
    assert loaded.classes is None
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, "notes.txt"])


def test_a_failed_write_leaves_the_old_model_whole(trained, folder, monkeypatch):
    paths = []

    def full_disk(path, content):
        paths.append(path)
        if len(paths) == 3:
            raise OSError(28, "No space left on device")
        with path.open("wb") as file:
            return file.write(content)

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(OSError, match="No space"):
        Embedder("convnet", dim=4).save_pretrained(folder)
    assert Embedder.from_pretrained(folder).fingerprint() == trained.fingerprint()
    assert sorted(path.name for path in folder.iterdir()) == FILES


def test_a_save_that_is_cut_between_two_moves_never_passes_for_a_model(folder, monkeypatch):
    replace, moved = os.replace, []

    def killed(source, target):
        if moved:
            raise KeyboardInterrupt
        moved.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        Embedder("convnet", dim=8, pool="gem", seed=6).save_pretrained(folder)
    assert len(moved) == 1
    with pytest.raises(DataError, match="fingerprint differs"):
        Embedder.from_pretrained(folder)


def test_a_file_is_no_folder(trained, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(DataError, match="is a file"):
        trained.save_pretrained(tmp_path / "taken")


def test_the_card_lies_beside_the_weights(trained, tmp_path):
    trained.save_pretrained(tmp_path, card={"scores": {"recall_at_1": 0.75}, "data": "drawings"})
    text = (tmp_path / "README.md").read_text()
    assert trained.fingerprint() in text
    assert "| recall_at_1 | 0.75 |" in text
    with pytest.raises(ConfigError, match="did you mean `notes`"):
        trained.save_pretrained(tmp_path / "other", card={"note": "x"})
    assert not (tmp_path / "other").exists()
