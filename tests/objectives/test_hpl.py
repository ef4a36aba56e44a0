"""Hierarchical proxies: the paper's sum and its refresh as loops, constants between refreshes, resuming, and what runs empty."""

import subprocess
import sys
from functools import partial

import pytest
import torch

import kinfold
from kinfold.core.clustering import kmeans
from kinfold.core.hierarchy import hierarchy_from_groups
from kinfold.core.random_groups import random_hierarchy
from kinfold.errors import ConfigError
from kinfold.losses import LOSSES, normalized_softmax, proxy_anchor, proxy_nca
from kinfold.objectives import HierarchicalProxies, Proxies
from kinfold.records import Embedded
from tests import oracles
from tests.killing import KillAt, Killed

N_CLASSES, DIM = 12, 5
HOSTS = {"proxy_anchor": proxy_anchor, "proxy_nca": proxy_nca, "normalized_softmax": normalized_softmax}


def hpl(sizes=(4, 2), loss=proxy_anchor, **changes):
    return HierarchicalProxies(Proxies(loss, N_CLASSES, DIM), None if "hierarchy" in changes else sizes, **changes)


def batch(n=16, seed=0, requires_grad=False):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, DIM, generator=generator).requires_grad_(requires_grad)
    label = torch.randint(N_CLASSES, (n,), generator=generator)
    return Embedded(x, x, label, torch.arange(n), torch.zeros(n, dtype=torch.long))


def drift(objective, seed=1):
    with torch.no_grad():
        objective.base.proxies.add_(torch.randn(N_CLASSES, DIM, generator=torch.Generator().manual_seed(seed)))


def lists(objective):
    levels = [objective.base.proxies.tolist(), *(level.proxies.tolist() for level in objective.levels)]
    return levels, [level.parent.tolist() for level in objective.levels]


def state(objective):
    return {name: tensor.clone() for name, tensor in objective.state_dict().items()}


def differing(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


@pytest.mark.parametrize("name", sorted(HOSTS))
@pytest.mark.parametrize("sizes", [(4,), (4, 2), (6, 3, 1)])
def test_the_loss_is_the_papers_sum_over_levels(name, sizes):
    objective = hpl(sizes, HOSTS[name], level_weights=(1.0, 0.5, 0.25, 2.0)[: len(sizes) + 1])
    given = batch()
    losses = objective(given)
    levels, parents = lists(objective)
    expected = oracles.hierarchical_proxies(
        given.embedding.tolist(), given.label.tolist(), levels, parents, objective.level_weights, getattr(oracles, name)
    )
    assert float(losses.total.detach()) == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert list(losses.terms) == [f"level_{i}" for i in range(len(sizes) + 1)]


def test_the_first_clustering_is_kmeans_and_its_centroids():
    objective = hpl((4, 2), seed=3)
    objective.on_epoch_start(0, None)
    below = objective.base.proxies.detach()
    for level in objective.levels:
        parent = kmeans(below, len(level.proxies), generator=torch.Generator().manual_seed(3))
        assert torch.equal(level.parent, parent)
        for j in range(len(level.proxies)):
            torch.testing.assert_close(level.proxies[j], below[parent == j].mean(dim=0))
        below = level.proxies


def test_a_refresh_is_the_papers_from_the_finest_level_up():
    objective = hpl((4, 2), on_empty="keep")
    objective.start()
    drift(objective)
    below, expected = objective.base.proxies.tolist(), []
    for level in objective.levels:
        parent, below = oracles.refreshed(below, level.parent.tolist(), level.proxies.tolist())
        expected.append((parent, below))
    objective.refresh()
    for level, (parent, proxies) in zip(objective.levels, expected, strict=True):
        assert level.parent.tolist() == parent
        torch.testing.assert_close(level.proxies, torch.tensor(proxies))


def test_coarse_proxies_are_constants_that_change_at_the_named_steps_alone():
    objective = hpl((4,), refresh_every=3)
    optimizer = torch.optim.SGD(objective.parameters(), lr=1.0)
    objective.on_epoch_start(0, None)
    changed = []
    for step in range(1, 11):
        optimizer.zero_grad()
        objective(batch(seed=step)).total.backward()
        optimizer.step()
        before = state(objective)
        objective.on_step_end(step)
        if differing(before, state(objective)):
            changed.append(step)
    assert changed == [3, 6, 9]
    assert set(dict(objective.named_parameters())) == {"base.proxies"}


def test_gradients_of_coarse_levels_reach_the_embedding_and_no_proxy():
    objective, given = hpl((4, 2)), batch(requires_grad=True)
    terms = objective(given).terms
    (terms["level_1"] + terms["level_2"]).backward()
    assert given.embedding.grad.abs().sum() > 0
    assert objective.base.proxies.grad is None
    assert all(not level.proxies.requires_grad for level in objective.levels)


@pytest.mark.parametrize("changes", [{"sizes": ()}, {"sizes": (4,), "level_weights": (1.0, 0.0)}], ids=["one level", "weight 0"])
def test_without_coarse_levels_it_is_the_base_loss_bit_for_bit(changes):
    objective, base = hpl(**changes), Proxies(proxy_anchor, N_CLASSES, DIM)
    optimizers = [torch.optim.AdamW(each.parameters(), lr=0.1) for each in (objective, base)]
    objective.on_epoch_start(0, None)
    for step in range(1, 8):
        values = []
        for each, optimizer in zip((objective, base), optimizers, strict=True):
            optimizer.zero_grad()
            given = batch(seed=step, requires_grad=True)
            loss = each(given).total
            loss.backward()
            optimizer.step()
            each.on_step_end(step)
            values.append((loss, given.embedding.grad))
        assert all(torch.equal(one, other) for one, other in zip(*values, strict=True))
    assert torch.equal(objective.base.proxies, base.proxies)


def test_warm_up_has_the_class_level_alone_then_clusters_what_was_learned():
    objective = hpl((4,), warmup_steps=5, refresh_every=2)
    objective.on_epoch_start(0, None)
    for step in range(1, 6):
        assert list(objective(batch()).terms) == ["level_0"]
        assert objective.snapshot() == {}
        drift(objective, seed=step)
        objective.on_step_end(step)
    assert list(objective(batch()).terms) == ["level_0", "level_1"]
    expected = kmeans(objective.base.proxies.detach(), 4, generator=torch.Generator().manual_seed(0))
    assert objective.snapshot() == {"parent": [expected.tolist()]}


def test_a_loop_that_never_called_the_hooks_has_coarse_levels_too():
    assert list(hpl((4,))(batch()).terms) == ["level_0", "level_1"]


@pytest.mark.parametrize("update", ["online", "offline", "fixed"])
def test_what_an_update_may_move(update):
    objective = hpl((4,), update=update, on_empty="keep")
    objective.start()
    before, seen = objective.levels[0].parent.clone(), []
    for seed in range(8):
        drift(objective, seed)
        objective.refresh()
        level = objective.levels[0]
        seen.append(level.parent.clone())
        below = objective.base.proxies.detach()
        for j in level.parent.unique():
            torch.testing.assert_close(level.proxies[j], below[level.parent == j].mean(dim=0))
        if update == "offline":
            assert torch.equal(level.parent, kmeans(below, 4, generator=torch.Generator().manual_seed(0)))
    assert all(torch.equal(parent, before) for parent in seen) == (update == "fixed")


def test_unit_space_sees_directions_alone():
    raw, unit = hpl((4,)), hpl((4,), cluster_space="unit")
    for objective in (raw, unit):
        objective.start()
        with torch.no_grad():
            objective.base.proxies.mul_(torch.linspace(0.1, 30, N_CLASSES).unsqueeze(1))
    before = state(unit)
    unit.refresh()
    twin = hpl((4,), cluster_space="unit")
    twin.start()
    twin.refresh()
    assert torch.equal(unit.levels[0].parent, twin.levels[0].parent)
    torch.testing.assert_close(unit.levels[0].proxies, twin.levels[0].proxies)
    torch.testing.assert_close(unit.levels[0].proxies.norm(dim=1), torch.ones(4))
    assert before.keys() == state(unit).keys()


def test_a_given_hierarchy_stays_and_its_proxies_are_means_of_the_members():
    classes = [f"c{i}" for i in range(N_CLASSES)]
    given = hierarchy_from_groups(classes, {"kind": [i % 3 for i in range(N_CLASSES)], "all": [0] * N_CLASSES})
    objective = hpl(hierarchy=given)
    assert [len(level.proxies) for level in objective.levels] == [3, 1]
    assert objective.update == "fixed"
    objective.start()
    for _ in range(3):
        drift(objective)
        objective.refresh()
        assert objective.levels[0].parent.tolist() == [i % 3 for i in range(N_CLASSES)]
        below = objective.base.proxies.detach()
        torch.testing.assert_close(objective.levels[0].proxies, torch.stack([below[i::3].mean(dim=0) for i in range(3)]))


def test_a_given_hierarchy_may_be_where_learning_starts():
    given = random_hierarchy(range(N_CLASSES), (4,), seed=5)
    objective = hpl(hierarchy=given, update="online")
    objective.start()
    assert objective.levels[0].parent.tolist() == list(given.levels[0].parent)
    objective.refresh()
    assert objective.levels[0].parent.tolist() != list(given.levels[0].parent)


class ThreeKinds:
    """A training set whose classes lie in three places: 0, 3, 6, … in the first, 1, 4, 7, … in the second."""

    n_classes, times_asked = N_CLASSES, 0

    def embed(self, view=0):
        self.times_asked += 1
        label = torch.arange(N_CLASSES).repeat(4)
        x = torch.eye(DIM)[label % 3] + 0.05 * torch.randn(len(label), DIM, generator=torch.Generator().manual_seed(3))
        return Embedded(x, x, label, torch.arange(len(label)), torch.zeros_like(label))


@pytest.mark.parametrize("warmup_steps", [0, 2])
def test_groups_may_come_from_the_embeddings_of_the_training_images(warmup_steps):
    objective, train_set = hpl((3, 1), groups_from="embeddings", warmup_steps=warmup_steps), ThreeKinds()
    objective.on_epoch_start(0, train_set)
    drift(objective)
    for step in range(1, 3):
        assert ("level_1" in objective(batch()).terms) == (warmup_steps == 0)
        objective.on_step_end(step)
    objective.on_epoch_start(1, train_set)
    assert train_set.times_asked == 1
    assert "level_1" in objective(batch()).terms
    parent = objective.levels[0].parent
    assert {(int(group), i % 3) for i, group in enumerate(parent)} == {(int(parent[i]), i) for i in range(3)}
    if warmup_steps:  # placed when warm-up ended, so the proxies are those of then
        below = objective.base.proxies.detach()
        torch.testing.assert_close(objective.levels[0].proxies[parent[0]], below[0::3].mean(dim=0))


def test_groups_from_embeddings_need_the_training_images():
    with pytest.raises(ConfigError, match="on_epoch_start"):
        hpl((3,), groups_from="embeddings")(batch())


@pytest.mark.parametrize("clustering", ["kmeans", "gmm", "agglomerative", lambda x, k, *, seed: torch.arange(len(x)) % k])
def test_any_clustering_starts_it(clustering):
    objective = hpl((4, 2), clustering=clustering)
    assert torch.isfinite(objective(batch()).total)
    assert objective.levels[0].parent.max() < 4


def test_extra_proxies_take_part_in_the_class_level_alone():
    objective, given = hpl((4,)), batch()
    extra = torch.randn(3, DIM)
    label = torch.where(torch.arange(16) < 4, N_CLASSES + torch.arange(16) % 3, given.label)
    terms = objective.terms(given.embedding, label, extra_proxies=extra).terms
    assert torch.equal(terms["level_0"], objective.base.terms(given.embedding, label, extra_proxies=extra).total)
    real = objective.terms(given.embedding[4:], label[4:]).terms
    torch.testing.assert_close(terms["level_1"], real["level_1"])
    only_novel = objective.terms(given.embedding, N_CLASSES + given.label % 3, extra_proxies=extra)
    assert float(only_novel.terms["level_1"]) == 0


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_any_loss_goes_on_every_level(loss):
    objective, given = hpl((4, 2), LOSSES[loss]), batch(requires_grad=True)
    objective(given).total.backward()
    assert torch.isfinite(given.embedding.grad).all()


@pytest.mark.parametrize("sizes", [(N_CLASSES,), (1,), (N_CLASSES, N_CLASSES, 1)])
def test_as_many_groups_as_classes_and_a_single_group_work(sizes):
    objective, given = hpl(sizes), batch(requires_grad=True)
    objective.start()
    if sizes[0] == N_CLASSES:
        level = objective.levels[0]
        torch.testing.assert_close(level.proxies[level.parent], objective.base.proxies.detach())
    for step in range(1, 4):
        objective(given).total.backward()
        drift(objective, step)
        objective.refresh()
    assert torch.isfinite(given.embedding.grad).all()


@pytest.mark.parametrize("on_empty", ["split", "keep"])
@pytest.mark.parametrize("n_distinct", [1, 2])
def test_equal_proxies_and_more_groups_than_distinct_ones_stay_finite(on_empty, n_distinct):
    objective = hpl((4, 2), on_empty=on_empty)
    with torch.no_grad():
        objective.base.proxies.copy_(torch.randn(n_distinct, DIM)[torch.arange(N_CLASSES) % n_distinct])
    for _ in range(3):
        given = batch(requires_grad=True)
        objective(given).total.backward()
        assert torch.isfinite(given.embedding.grad).all()
        objective.refresh()
    groups = {(int(parent), i % n_distinct) for i, parent in enumerate(objective.levels[0].parent)}
    assert len(groups) == len({group for group, _ in groups}), "no group mixes distinct proxies; the rest are copies or empty"
    assert all(torch.isfinite(level.proxies).all() for level in objective.levels)


@pytest.mark.parametrize(("on_empty", "n_empty"), [("keep", 1), ("split", 0)])
def test_an_empty_group_keeps_its_place_or_gets_a_part_of_the_largest(on_empty, n_empty):
    objective = hpl((4,), on_empty=on_empty)
    objective.start()
    far = torch.full((DIM,), 1e3)
    gone = int(objective.levels[0].parent[0])
    objective.levels[0].proxies[gone] = far
    objective.refresh()
    health = objective.health(batch())
    assert health["groups_empty_1"] == n_empty
    assert torch.equal(objective.levels[0].proxies[gone], far) == (on_empty == "keep")
    assert torch.isfinite(objective(batch()).total)


def test_health_counts_moves_and_sizes():
    objective = hpl((4,))
    assert "moved_1" not in hpl((4,), warmup_steps=1).health(batch())
    objective.start()
    before = objective.levels[0].parent.clone()
    drift(objective)
    objective.refresh()
    health, after = objective.health(batch()), objective.levels[0].parent
    assert health["moved_1"] == int((before != after).sum())
    assert health["largest_group_1"] == pytest.approx(int(torch.bincount(after).max()) / N_CLASSES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": (13,)}, r"coarse_sizes = \[13\] for 12 classes"),
        ({"sizes": (4, 5)}, "each from 1 to the size of the level below"),
        ({"sizes": (0,)}, "each from 1"),
        ({"level_weights": (1.0, 0.1)}, r"level_weights = \[1.0, 0.1\]: .* each of 2 coarse levels"),
        ({"level_weights": (1.0, -0.1, 0.1)}, "0 or more"),
        ({"level_weights": (1.0, float("nan"), 0.1)}, "0 or more"),
        ({"refresh_every": 0}, "refresh_every = 0"),
        ({"warmup_steps": -1}, "warmup_steps = -1"),
        ({"update": "sometimes"}, "update = 'sometimes': one of online, offline, fixed"),
        ({"cluster_space": "Unit"}, "cluster_space = 'Unit'"),
        ({"clustering": "kmeens"}, "did you mean `kmeans`"),
        ({"hierarchy": random_hierarchy(range(5), (2,), seed=0)}, "the hierarchy has 5 classes, the base 12"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        hpl(**changes)


def test_sizes_and_a_hierarchy_together_are_refused():
    with pytest.raises(ConfigError, match="give one"):
        HierarchicalProxies(Proxies(proxy_anchor, 5, 2), (2,), hierarchy=random_hierarchy(range(5), (2,), seed=0))


def test_a_loaded_objective_goes_on_and_never_clusters_again():
    objective = hpl((4, 2))
    objective.start()
    drift(objective)
    objective.refresh()
    twin = hpl((4, 2))
    twin.load_state_dict(objective.state_dict())
    drift(objective, 7)
    drift(twin, 7)
    twin.on_epoch_start(1, None)
    assert differing(state(objective), state(twin)) == set()
    assert torch.equal(objective(batch()).total, twin(batch()).total)


PROGRAM = """
import torch
from kinfold.losses import proxy_anchor
from kinfold.objectives import HierarchicalProxies, Proxies
objective = HierarchicalProxies(Proxies(proxy_anchor, 200, 32, seed=4), (20, 5), seed=4)
objective.start()
objective.refresh()
print(objective.snapshot(), [level.proxies.sum().item() for level in objective.levels])
"""


def test_two_fresh_processes_hold_the_same_hierarchy():
    found = [subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert found[0] == found[1] != ""


@pytest.mark.parametrize("groups_from", ["proxies", "embeddings"])
@pytest.mark.parametrize(("killed_at", "warmup_steps"), [(3, 0), (7, 0), (7, 5), (4, 5)])
def test_killed_and_resumed_it_ends_as_if_nothing_had_been(tiny_photos, tmp_path, killed_at, warmup_steps, groups_from):
    table = kinfold.read_table(tiny_photos)
    recipe = kinfold.Recipe(
        batches={"batch_size": 12, "images_per_class": 3},
        optimizer={"learning_rate": 1e-2, "proxies": {"learning_rate": 1.0}},
        train={"epochs": 3, "log_every": 1, "checkpoint_steps": 2},
    )

    def train(folder, watch=None):
        embedder = kinfold.Embedder("convnet", dim=16, size=24, seed=3)
        objective = HierarchicalProxies(Proxies(partial(proxy_anchor), 6, 16), (3, 2), refresh_every=2, warmup_steps=warmup_steps)
        return kinfold.fit(table, embedder, objective, run=tmp_path / folder, recipe=recipe, watch=watch), objective

    whole, expected = train("whole")
    with pytest.raises(Killed):
        train("killed", KillAt(killed_at))
    resumed, found = train("killed")
    assert resumed.embedder.fingerprint() == whole.embedder.fingerprint()
    assert differing(state(found), state(expected)) == set()
    speed = ("images_per_second", "wait_share", "time")
    rows = [[{k: v for k, v in row.items() if k not in speed} for row in run.run.rows()] for run in (resumed, whole)]
    assert rows[0] == rows[1]
    snapshots = [row["snapshot"]["parent"] for row in rows[0] if "snapshot" in row]
    assert len(snapshots) == (3 if warmup_steps == 0 else 2)  # an epoch has 4 steps
    assert snapshots[-1] == [level.parent.tolist() for level in expected.levels]
    assert {len(snapshots[-1][0]), len(snapshots[-1][1])} == {6, 3}
