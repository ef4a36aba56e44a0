"""L2A-NC: the sums of both phases in loops, what learns when, tensor by tensor, resuming, hosts of every kind, and what remains."""

from functools import partial

import pytest
import torch
from torch import nn

import kinfold
from kinfold.core.divergence import DIVERGENCES, gauss_kl
from kinfold.core.reduce import normalise
from kinfold.errors import ConfigError
from kinfold.losses import LOSSES, lifted_structure, multi_similarity, normalized_softmax, proxy_anchor, proxy_nca, triplet
from kinfold.objectives import HierarchicalProxies, NovelClasses, Pairwise, Proxies
from kinfold.objectives.l2a_nc import LEARNS
from kinfold.records import Embedded
from tests import oracles
from tests.killing import KillAt, Killed

C, DIM = 5, 6
HOSTS = {"proxy_anchor": proxy_anchor, "proxy_nca": proxy_nca, "normalized_softmax": normalized_softmax}
ORACLES = {"proxy_anchor": oracles.proxy_anchor, "proxy_nca": oracles.proxy_nca, "normalized_softmax": oracles.normalized_softmax}


def over_proxies(loss=proxy_anchor, epochs=0, **changes):
    return NovelClasses(Proxies(loss, C, DIM), pretraining_epochs=epochs, **changes)


def over_pairs(loss=multi_similarity, epochs=0, **changes):
    return NovelClasses(Pairwise(loss), pretraining_epochs=epochs, n_classes=C, dim=DIM, **changes)


def over_levels(epochs=0, **changes):
    return NovelClasses(HierarchicalProxies(Proxies(proxy_anchor, C, DIM), (2,)), pretraining_epochs=epochs, **changes)


def batch(n=12, seed=0, label=None):
    x = torch.randn(n, DIM, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    label = torch.arange(n) % C if label is None else label
    return Embedded(x, x, label, torch.arange(n), torch.zeros(n, dtype=torch.long))


def twin_of(objective, make):
    twin = make()
    twin.load_state_dict(objective.state_dict())
    return twin


def masks(rows, columns):
    positive = [[a == b for b in columns] for a in rows]
    return positive, [[not value for value in row] for row in positive]


def cosines(x, y):
    return (normalise(x.detach()) @ normalise(y.detach()).T).tolist()


def plain(loss, sim, rows, columns):
    positive, negative = masks(rows, columns)
    zero, one = ([[value] * len(columns) for _ in rows] for value in (0.0, 1.0))
    return loss(sim, positive, negative, zero, one)


class TestTheSums:
    @pytest.mark.parametrize("name", sorted(HOSTS))
    def test_of_the_generators_phase(self, name):
        objective, given = over_proxies(HOSTS[name], epochs=3, divergence_weight=0.5), batch()
        made = twin_of(objective, lambda: over_proxies(HOSTS[name], epochs=3)).generator(given)
        found = objective(given, "generator").terms
        proxies = torch.cat([objective.base.proxies, objective.novel_proxies])
        expected = plain(ORACLES[name], cosines(made.embedding, proxies), made.label.tolist(), range(3 * C))
        assert float(found["metric"].detach()) == pytest.approx(expected, rel=1e-5)
        divergence = gauss_kl(normalise(made.embedding), made.code, normalise(given.embedding), given.label)
        torch.testing.assert_close(found["divergence"], 0.5 * divergence)

    @pytest.mark.parametrize("name", sorted(HOSTS))
    def test_of_the_embedders_phase_in_both_stages(self, name):
        given = batch()
        alone = over_proxies(HOSTS[name], epochs=3)
        expected = plain(ORACLES[name], cosines(given.embedding, alone.base.proxies), given.label.tolist(), range(C))
        assert float(alone(given).total.detach()) == pytest.approx(expected, rel=1e-5)
        joint = over_proxies(HOSTS[name])
        made = twin_of(joint, lambda: over_proxies(HOSTS[name])).generator(given)
        rows, labels = torch.cat([given.embedding, made.embedding]), [*given.label.tolist(), *made.label.tolist()]
        proxies = torch.cat([joint.base.proxies, joint.novel_proxies])
        expected = plain(ORACLES[name], cosines(rows, proxies), labels, range(3 * C))
        assert float(joint(given).total.detach()) == pytest.approx(expected, rel=1e-5)

    def test_over_pairs_real_vectors_are_further_negatives_and_there_are_no_proxies(self):
        objective, given = over_pairs(), batch()
        made = twin_of(objective, over_pairs).generator(given)
        rows = torch.cat([given.embedding, made.embedding])
        label = torch.cat([given.label, made.label])
        sim = cosines(rows, rows)
        positive, negative = masks(label.tolist(), label.tolist())
        for i in range(len(label)):
            positive[i][i] = False
        size = len(label)
        zero, one = ([[value] * size for _ in range(size)] for value in (0.0, 1.0))
        expected = oracles.multi_similarity(sim, positive, negative, zero, one)
        assert float(objective(given, "generator").terms["metric"].detach()) == pytest.approx(expected, rel=1e-4)
        assert objective.novel_proxies is None
        assert not set(label[: len(given.label)].tolist()) & set(made.label.tolist())

    def test_existing_classes_have_no_novel_proxies_and_real_labels(self):
        objective, given = over_proxies(existing=True), batch()
        made = twin_of(objective, lambda: over_proxies(existing=True)).generator(given)
        assert objective.novel_proxies is None
        assert objective.n_novel == C
        assert made.label.max() < C
        expected = plain(oracles.proxy_anchor, cosines(made.embedding, objective.base.proxies), made.label.tolist(), range(C))
        assert float(objective(given, "generator").terms["metric"].detach()) == pytest.approx(expected, rel=1e-5)


MAKERS = {
    "proxies": over_proxies,
    "levels": over_levels,
    "pairs": over_pairs,
    "triplets": partial(over_pairs, triplet),
    "existing": partial(over_proxies, existing=True),
    "existing pairs": partial(over_pairs, existing=True),
}


@pytest.mark.parametrize("kind", sorted(MAKERS))
@pytest.mark.parametrize(("stage", "phase"), sorted(LEARNS))
def test_a_phase_moves_what_the_table_says_and_nothing_else(kind, stage, phase):
    objective = MAKERS[kind](epochs=0 if stage == "joint" else 3)
    assert objective.stage == stage
    torch.manual_seed(0)
    model, image = nn.Linear(4, DIM), torch.randn(12, 4)
    x = model(image)
    given = Embedded(x, x, torch.arange(12) % C, torch.arange(12), torch.zeros(12, dtype=torch.long))
    objective(given, phase).total.backward()
    owner = {**{f"model.{name}": "model" for name, _ in model.named_parameters()}}
    owner |= {name: name.split(".")[0] for name, _ in objective.named_parameters()}
    parameters = {**{f"model.{name}": p for name, p in model.named_parameters()}, **dict(objective.named_parameters())}
    moved = {name for name, p in parameters.items() if p.grad is not None and bool(p.grad.any())}
    without = {name for name, p in parameters.items() if p.grad is None}
    wanted = {name for name in parameters if owner[name] in LEARNS[stage, phase]}
    assert without == set(parameters) - wanted
    # Two vectors a class of a small batch may leave a row of triplets at rest; whole tensors are not.
    assert moved >= {name for name in wanted if not name.startswith("generator.network.layers.") or not name.endswith("bias")}
    assert all(p.requires_grad for p in objective.parameters())


def test_no_novel_class_is_the_base_bit_for_bit():
    given, objective = batch(), over_proxies(novel_ratio=0)
    assert objective.phases == ("embedder",)
    assert torch.equal(objective(given).total, Proxies(proxy_anchor, C, DIM)(given).total)
    assert [group.name for group in objective.parameter_groups()] == ["proxies"]


def test_pretraining_is_the_base_bit_for_bit():
    given = batch()
    assert torch.equal(over_proxies(epochs=1)(given).total, Proxies(proxy_anchor, C, DIM)(given).total)
    assert torch.equal(over_pairs(epochs=1)(given).total, Pairwise(multi_similarity)(given).total)


@pytest.mark.parametrize(
    ("ratio", "most", "wanted"), [(2.0, None, 10), (0.5, None, 2), (4.0, 7, 7), (0.1, None, 0), (1.0, 99, 5)]
)
def test_the_number_of_novel_classes_is_a_ratio_with_a_limit(ratio, most, wanted):
    assert over_proxies(novel_ratio=ratio, max_novel=most).n_novel == wanted


def test_stages_follow_the_epochs():
    objective = over_proxies(epochs=2)
    found = []
    for epoch in range(4):
        objective.on_epoch_start(epoch, None)
        found.append(objective.stage)
    assert found == ["pretraining", "pretraining", "joint", "joint"]


def test_a_loaded_objective_is_in_its_stage_and_draws_what_it_would_have_drawn():
    objective, given = over_proxies(epochs=1), batch()
    objective.on_epoch_start(1, None)
    for _ in range(3):
        objective(given)
    twin = twin_of(objective, lambda: over_proxies(epochs=1))
    assert twin.stage == "joint"
    assert torch.equal(twin(given, "generator").total, objective(given, "generator").total)
    assert torch.equal(twin(given).total, objective(given).total)


def test_nothing_draws_from_torchs_generators():
    before = torch.get_rng_state()
    for name in DIVERGENCES:
        objective = over_proxies(divergence=DIVERGENCES[name])
        objective(batch(), "generator")
        objective(batch())
        objective.health(batch())
    assert torch.equal(torch.get_rng_state(), before)


def test_over_pairs_a_novel_class_has_as_many_vectors_as_a_real_one():
    label = torch.arange(4).repeat_interleave(3)
    made = over_pairs(generated_ratio=2.0).generator(batch(label=label))
    _, count = made.label.unique(return_counts=True)
    assert count.tolist() == [3] * 8
    lonely = over_pairs().generator(batch(4, label=torch.arange(4)))
    assert lonely.label.unique(return_counts=True)[1].tolist() == [2, 2]


def test_over_proxies_novel_classes_are_drawn_evenly():
    objective = over_proxies()
    codes = torch.cat([objective.generator(batch(64)).code for _ in range(50)])
    count = torch.bincount(codes, minlength=2 * C)
    assert len(codes) == 64 * 50
    assert int(count.min()) > 250
    assert int(count.max()) < 390


def test_generated_vectors_are_as_long_as_the_batchs():
    given = batch()
    made = over_proxies().generator(given)
    torch.testing.assert_close(made.embedding.norm(dim=1), given.embedding.norm(dim=1).mean().expand(12))
    assert made.item.unique().numel() == 12
    assert made.item.max() < 0


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_any_loss_goes_with_it_over_proxies_and_over_pairs(loss):
    for objective in (over_proxies(LOSSES[loss]), over_pairs(LOSSES[loss])):
        for phase in objective.phases:
            assert torch.isfinite(objective(batch(), phase).total)


@pytest.mark.parametrize("make", [over_proxies, partial(over_pairs, lifted_structure), over_levels])
@pytest.mark.parametrize("n", [1, 2])
def test_tiny_batches_and_batches_of_one_class_stay_finite(make, n):
    objective, given = make(), batch(n, label=torch.zeros(n, dtype=torch.long))
    for phase in objective.phases:
        objective(given, phase).total.backward()
    assert torch.isfinite(given.embedding.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in objective.parameters() if p.grad is not None)


def test_the_base_keeps_its_hooks_numbers_and_groups():
    objective = over_levels()
    objective.on_epoch_start(0, None)
    assert objective.base.snapshot()["parent"] == objective.snapshot()["parent"]
    before = objective.base.levels[0].proxies.clone()
    with torch.no_grad():
        objective.base.base.proxies.mul_(2.0)
    objective.on_step_end(100)
    assert not torch.equal(objective.base.levels[0].proxies, before)
    assert objective.base.health(batch()).items() <= objective.health(batch()).items()
    assert [group.name for group in objective.parameter_groups()] == ["proxies", "generator", "novel_proxies"]


def test_levels_see_real_rows_alone():
    objective, given = over_levels(), batch()
    terms = objective(given).terms
    expected = HierarchicalProxies(Proxies(proxy_anchor, C, DIM), (2,))(given).terms["level_1"]
    torch.testing.assert_close(terms["level_1"], expected)


def test_the_generator_has_an_adamw_of_its_own_whatever_the_run_takes():
    groups = {group.name: group for group in over_proxies(learning_rate=2e-4).parameter_groups()}
    own = groups["generator"]
    assert (own.kind, own.learning_rate, own.weight_decay, own.eps) == ("adamw", 2e-4, 1e-4, 1e-8)
    assert groups["novel_proxies"].lr_scale == groups["proxies"].lr_scale == 100.0


def test_novel_proxies_start_as_long_as_real_ones_and_elsewhere():
    objective = NovelClasses(Proxies(proxy_anchor, 100, 64), pretraining_epochs=0)
    real, novel = objective.base.proxies.detach(), objective.novel_proxies.detach()
    assert float(novel.norm(dim=1).mean() / real.norm(dim=1).mean()) == pytest.approx(1.0, abs=0.05)
    assert float((normalise(novel) @ normalise(real).T).max()) < 0.7


def test_health_looks_and_changes_nothing():
    objective, given = over_proxies(), batch()
    state = {name: tensor.clone() for name, tensor in objective.state_dict().items()}
    found = objective.health(given)
    assert found == objective.health(given)
    assert all(torch.equal(state[name], tensor) for name, tensor in objective.state_dict().items())
    assert objective.generator.network.training
    novel, real = objective.novel_proxies.detach(), objective.base.proxies.detach()
    made, code = objective.generator.looked_at(torch.arange(2 * C), 4)
    sim = normalise(made) @ normalise(novel).T
    own = torch.stack([sim[i, code[i]] for i in range(len(code))]).detach().reshape(2 * C, 4)
    assert found["novel_own_similarity"] == pytest.approx(float(own.mean()), abs=1e-5)
    assert found["novel_own_similarity_min"] == pytest.approx(float(own.amin(dim=1).mean()), abs=1e-5)
    to_real = normalise(novel) @ normalise(real).T
    assert found["novel_real_similarity"] == pytest.approx(float(to_real.mean()), abs=1e-5)
    assert found["novel_real_similarity_max"] == pytest.approx(float(to_real.amax(dim=1).mean()), abs=1e-5)
    assert objective.snapshot()["nearest_real"] == to_real.argmax(dim=1).tolist()
    assert found["generated_variance"] > 0


def test_health_of_existing_classes_and_of_pairs_has_what_there_is():
    assert "novel_real_similarity" not in over_proxies(existing=True).health(batch())
    found = over_pairs().health(batch())
    assert "generated_variance" in found
    assert "novel_own_similarity" not in found


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NovelClasses(Pairwise(triplet), pretraining_epochs=1), "`n_classes` is not known to Pairwise: give it"),
        (lambda: NovelClasses(Pairwise(triplet), pretraining_epochs=1, n_classes=5), "`dim` is not known to Pairwise"),
        (lambda: over_proxies(n_classes=7), "`n_classes` = 7, but Proxies was made for 5: leave it out"),
        (lambda: over_proxies(epochs=-1), "`pretraining_epochs` = -1: it must be 0 or more"),
        (lambda: over_proxies(novel_ratio=-0.5), "`novel_ratio` = -0.5"),
        (lambda: over_proxies(divergence_weight=float("nan")), "`divergence_weight` = nan"),
        (lambda: over_proxies(generated_ratio=0), "generated_ratio = 0 and"),
        (lambda: over_proxies(max_novel=0), "max_novel = 0: at least 1"),
    ],
)
def test_settings_that_cannot_be_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def state(objective):
    return {name: tensor.clone() for name, tensor in objective.state_dict().items()}


BASES = {
    "proxies": lambda: Proxies(proxy_anchor, 6, 16),
    "levels": lambda: HierarchicalProxies(Proxies(proxy_nca, 6, 16), (3,), refresh_every=2),
    "pairs": lambda: Pairwise(multi_similarity),
}


@pytest.mark.parametrize("kind", sorted(BASES))
@pytest.mark.parametrize("killed_at", [2, 4, 7])
def test_killed_in_either_stage_and_resumed_it_ends_as_if_nothing_had_been(tiny_photos, tmp_path, killed_at, kind):
    table = kinfold.read_table(tiny_photos)
    recipe = kinfold.Recipe(
        batches={"batch_size": 12, "images_per_class": 3},
        optimizer={"learning_rate": 1e-2},
        stage={"joint": {"optimizer": {"learning_rate": 5e-3}}},
        schedule={"kind": "cosine"},
        train={"epochs": 3, "log_every": 1, "checkpoint_steps": 2},
    )

    def train(folder, watch=None):
        embedder = kinfold.Embedder("convnet", dim=16, size=24, seed=3)
        objective = NovelClasses(BASES[kind](), pretraining_epochs=1, n_classes=6, dim=16)  # an epoch has 4 steps
        return kinfold.fit(table, embedder, objective, run=tmp_path / folder, recipe=recipe, watch=watch), objective

    whole, expected = train("whole")
    with pytest.raises(Killed):
        train("killed", KillAt(killed_at))
    resumed, found = train("killed")
    assert resumed.embedder.fingerprint() == whole.embedder.fingerprint()
    one, two = state(found), state(expected)
    assert {name for name in one if not torch.equal(one[name], two[name])} == set()
    speed = ("images_per_second", "wait_share", "time")
    rows = [[{k: v for k, v in row.items() if k not in speed} for row in run.run.rows()] for run in (resumed, whole)]
    assert rows[0] == rows[1]
    rates = [row["lr/head"] for row in rows[0] if "lr/head" in row]
    assert rates[0] == pytest.approx(1e-2)
    assert rates[4] == pytest.approx(5e-3)  # the joint stage begins anew at its own rate


def test_a_frozen_trunks_batch_norm_never_freezes_the_generators(tiny_photos, tmp_path):
    embedder = kinfold.Embedder("convnet", dim=16, size=24, seed=3)
    before = {name: value.clone() for name, value in embedder.state_dict().items() if name.endswith("running_mean")}
    objective = NovelClasses(Proxies(proxy_anchor, 6, 16), pretraining_epochs=1)
    recipe = kinfold.Recipe(batches={"batch_size": 12, "images_per_class": 3}, train={"epochs": 2, "frozen_batch_norm": True})
    kinfold.fit(kinfold.read_table(tiny_photos), embedder, objective, run=tmp_path / "run", recipe=recipe)
    assert before
    assert all(torch.equal(embedder.state_dict()[name], value) for name, value in before.items())
    assert all(bool(norm.norm.running_mean.any()) for norm in objective.generator.network.norms)


def test_nothing_of_the_method_remains_in_the_saved_model(tiny_photos, tmp_path):
    table = kinfold.read_table(tiny_photos)
    recipe = kinfold.Recipe(batches={"batch_size": 12, "images_per_class": 3}, train={"epochs": 1})
    folders = {}
    for name, objective in {
        "base": Proxies(proxy_anchor, 6, 16),
        "l2a_nc": NovelClasses(Proxies(proxy_anchor, 6, 16), pretraining_epochs=0),
    }.items():
        embedder = kinfold.Embedder("convnet", dim=16, size=24, seed=3)
        kinfold.fit(table, embedder, objective, run=tmp_path / name, recipe=recipe)
        folders[name] = tmp_path / name / "model"
    files = {name: sorted(file.name for file in folder.rglob("*")) for name, folder in folders.items()}
    assert files["base"] == files["l2a_nc"]
    names = {name: set(kinfold.Embedder.from_pretrained(folder).state_dict()) for name, folder in folders.items()}
    assert names["base"] == names["l2a_nc"]
