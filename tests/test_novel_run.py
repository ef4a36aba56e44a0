"""Generated classes read from a run's checkpoint, against objectives whose state was put there by hand."""

import json
from pathlib import Path

import pytest
import torch

import kinfold
from kinfold.core.similarity import cosine, negative_euclidean
from kinfold.engine.checkpoint import save_checkpoint
from kinfold.engine.run import Run
from kinfold.errors import DataError
from kinfold.losses import proxy_anchor
from kinfold.novel_run import generated_classes
from kinfold.objectives.hpl import HierarchicalProxies
from kinfold.objectives.l2a_nc import NovelClasses
from kinfold.objectives.pairwise import Pairwise
from kinfold.objectives.proxy import Proxies
from kinfold.records import Embedded


def objective(base=None, *, seed=0, **settings) -> NovelClasses:
    base = Proxies(proxy_anchor, 5, 8, seed=seed) if base is None else base
    return NovelClasses(base, pretraining_epochs=1, seed=seed, **{"noise_dim": 3, "hidden_dim": 6, **settings})


def write_run(folder: Path, last: NovelClasses, *, best: NovelClasses | None = None) -> Run:
    """Write what training would leave of a run with this objective."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environment.json").write_text("{}")
    (folder / "config.json").write_text(json.dumps({"objective_object": last.describe()}))
    run = Run(folder)
    run.last.parent.mkdir()
    save_checkpoint(run.last, {"objective": last.state_dict()})
    if best is not None:
        save_checkpoint(run.best, {"objective": best.state_dict()})
    return run


def used(own: NovelClasses) -> NovelClasses:
    """Return it after a few batches: its running statistics are no longer those of the start."""
    for _ in range(3):
        x = torch.randn(16, 8, generator=torch.Generator().manual_seed(3))
        own.generator(Embedded(x, x, torch.arange(16) % 5, torch.arange(16), torch.zeros(16, dtype=torch.long)))
    return own


def test_it_makes_the_vectors_that_the_objective_looks_at_itself(tmp_path):
    own = used(objective())
    found = kinfold.generated_classes(str(write_run(tmp_path / "run", own).folder))
    code = torch.tensor([0, 7, 9])
    label = code.repeat_interleave(4)
    noise = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))
    own.generator.network.eval()
    assert torch.equal(found.network(noise, label), own.generator.network(noise, label))
    made, made_label = found.vectors(code, 4)
    assert torch.equal(made_label, label)
    assert not made.requires_grad
    assert torch.equal(found.novel_proxies, own.novel_proxies)
    assert torch.equal(found.real_proxies, own.base.proxies)
    assert found.classes == tuple(f"class {number}" for number in range(5))


def test_noise_is_another_for_another_seed_and_for_each_vector(tmp_path):
    found = generated_classes(write_run(tmp_path / "run", used(objective())))
    one, other = (found.vectors(torch.arange(10), 3, seed=seed)[0] for seed in (0, 1))
    assert not torch.isclose(one, other).all(dim=1).any()
    assert len(one.unique(dim=0)) == 30


def test_the_saved_models_checkpoint_is_read_where_there_are_two(tmp_path):
    run = write_run(tmp_path / "run", objective(seed=1), best=objective(seed=2))
    assert torch.equal(generated_classes(run).novel_proxies, objective(seed=2).novel_proxies)
    run.best.unlink()
    assert torch.equal(generated_classes(run).novel_proxies, objective(seed=1).novel_proxies)


def test_proxies_and_similarity_are_found_below_groups_of_classes(tmp_path):
    proxies = Proxies(proxy_anchor, 5, 8, similarity=negative_euclidean)
    found = generated_classes(write_run(tmp_path / "hpl", objective(HierarchicalProxies(proxies, (2,)))))
    assert torch.equal(found.real_proxies, proxies.proxies)
    assert found.similarity is negative_euclidean
    assert generated_classes(write_run(tmp_path / "proxy", objective())).similarity is cosine


def test_pairs_have_no_proxies_and_existing_classes_no_novel_ones(tmp_path):
    pairs = objective(Pairwise(proxy_anchor), n_classes=5, dim=8)
    found = generated_classes(write_run(tmp_path / "pairs", pairs))
    assert (found.n_generated, found.novel_proxies, found.real_proxies) == (10, None, None)
    found = generated_classes(write_run(tmp_path / "existing", objective(existing=True)))
    assert (found.n_generated, found.novel_proxies, found.existing) == (5, None, True)


def test_folders_that_hold_no_generated_classes_are_one_clear_error(tmp_path):
    with pytest.raises(DataError, match=r"nowhere is no run: name a folder that `kinfold train` wrote"):
        generated_classes(tmp_path / "nowhere")
    begun = write_run(tmp_path / "begun", objective())
    begun.last.unlink()
    with pytest.raises(DataError, match="begun has no checkpoint yet: train it first"):
        generated_classes(begun)
    with pytest.raises(DataError, match=r"none generates no classes: its objective is not l2a_nc, or has no novel class"):
        generated_classes(write_run(tmp_path / "none", objective(novel_ratio=0)))
