"""Configuration: TOML plus overrides, strict, with the nearest name."""

import pytest
import torch

from kinfold.build import build_table
from kinfold.build_objective import build_objective
from kinfold.config import DataSettings, read_config
from kinfold.errors import ConfigError
from kinfold.objective_settings import ObjectiveSettings
from kinfold.records import Embedded


def config(tmp_path, text="", overrides=("data.root=photos",)):
    file = tmp_path / "birds.toml"
    file.write_text(text, encoding="utf-8")
    return read_config(file, overrides)


def test_overrides_go_over_the_file_and_the_file_over_the_defaults(tmp_path):
    found = config(
        tmp_path, "[train]\nepochs = 3\nclip_norm = 2.0\n", ["data.root=photos", "train.epochs=5", "model.pool=avg+max"]
    )
    assert (found.train.epochs, found.train.clip_norm, found.model.pool, found.model.dim) == (5, 2.0, "avg+max", 128)
    assert found.run.replace("\\", "/") == "runs/birds"


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("evaluation.ks=[1, 10]", (1, 10)),
        ("evaluation.metrics=none", None),
        ("data.root=2024-01-05", "2024-01-05"),
        ("data.root=/a b/c", "/a b/c"),
        ("data.root='quoted'", "quoted"),
        ("train.clip_norm=1e-1", 0.1),
        ("train.frozen_batch_norm=true", True),
    ],
)
def test_override_values_are_toml_or_text(tmp_path, override, value):
    found = config(tmp_path, "", ["data.root=photos", override])
    section, key = override.split("=")[0].split(".")
    assert getattr(getattr(found, section), key) == value


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("[trian]\nepochs = 3", [], "`trian` is not known: did you mean `train`"),
        ("[train]\nepoch = 3", [], "`train.epoch` is not known: did you mean `epochs`"),
        ("", ["train.epoch=3"], "did you mean `epochs`"),
        ("[train]\nepochs = -1", [], r"`train.epochs`: .*greater than or equal to 0 \(got -1\)"),
        ("[train]\nepochs = 'three'", [], "`train.epochs`: .*valid integer"),
        (
            "[optimizer.proxies]\nlearning_rat = 1",
            [],
            r"`optimizer.proxies.learning_rat` is not known: did you mean `learning_rate`",
        ),
        ("[optimizer]\nbetas = [0.9, 1.5]", [], r"`optimizer.betas.1`: .*less than 1"),
        ("[optimizer]\ngroups = 3\n[optimizer.proxies]\nkind = 'sgd'", [], "one table per parameter group"),
        ("", ["evaluation.split=tset"], "`evaluation.split`: .*'test'"),
        ("[schedule]\nkind = 'cosin'", [], "`schedule.kind`: .*'cosine'"),
        ("[schedule]\nkind = 'step'", [], "`schedule.kind` = 'step' needs `milestones` or `every_epochs`"),
        ("[train", [], "is not TOML"),
        ("", ["train.epochs"], "not of the form key=value"),
        ("seed = 1", ["seed.x=1"], "`seed` is a value and has no keys below it"),
        ("", ["=3"], "not of the form key=value"),
    ],
)
def test_each_fault_is_one_clear_error(tmp_path, text, overrides, message):
    with pytest.raises(ConfigError, match=message):
        config(tmp_path, text, ["data.root=photos", *overrides])


def test_a_missing_key_says_how_to_give_it(tmp_path):
    with pytest.raises(ConfigError, match=r"`data.*` is missing"):
        config(tmp_path, "", [])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere.toml is no file"):
        read_config(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "proxy_ancor"}, "`objective.loss` = 'proxy_ancor' is not known: did you mean `proxy_anchor`"),
        ({"loss_options": {"scale": "abc"}}, "`objective.loss_options.scale` = 'abc' cannot be used: it must be a number"),
        ({"name": "pairwise", "loss": "triplet", "loss_options": {"pick": "batch_hard"}}, "must be given as `objective.pick`"),
        ({"name": "pairwise", "loss": "triplet", "pick_options": {"margin": 0.1}}, "does nothing without `objective.pick`"),
        (
            {"name": "pairwise", "loss": "contrastive", "lr_scale": 3.0},
            "goes with proxies, not with `objective.name` = 'pairwise'",
        ),
        ({"coarse_sizes": [2]}, "`objective.coarse_sizes` goes with `objective.name` = 'hpl' only, not with 'proxy'"),
        ({"name": "hpl", "miner": "multi_similarity"}, "goes with `objective.name` = 'pairwise' only"),
        ({"name": "hpl", "coarse_sizes": [4]}, r"coarse_sizes = \[4\] for 3 classes"),
        ({"name": "hpl", "clustering": "kmean"}, "`objective.clustering` = 'kmean' is not known: did you mean `kmeans`"),
        ({"name": "hpl", "hierarchy": "random"}, "needs `objective.coarse_sizes`"),
        ({"name": "hpl", "hierarchy": ["family"]}, "needs the training images' table"),
        ({"novel_ratio": 1.0}, "`objective.novel_ratio` goes with `objective.name` = 'l2a_nc' only, not with 'proxy'"),
        ({"host": "pairwise"}, "`objective.host` goes with l2a_nc and proxy_synthesis, not with `objective.name` = 'proxy'"),
        ({"name": "l2a_nc", "n_points": 2}, "`objective.n_points` goes with `objective.name` = 'embedding_expansion' only"),
        ({"name": "l2a_nc", "coarse_sizes": [2]}, "`objective.coarse_sizes` goes with `objective.name` = 'hpl' only"),
        ({"name": "l2a_nc", "divergence": "gaus_kl"}, "`objective.divergence` = 'gaus_kl' is not known: did you mean `gauss_kl`"),
        ({"name": "l2a_nc", "divergence_options": {"eps": 1.0}}, "does nothing without `objective.divergence`"),
        (
            {"name": "l2a_nc", "divergence": "mmd", "divergence_options": {"width": 1.0}},
            "`objective.divergence_options.width` is not known: did you mean `widths`",
        ),
        (
            {"name": "l2a_nc", "miner": "multi_similarity_mining"},
            "`objective.miner` = .* goes with `objective.name` = 'pairwise'",
        ),
        ({"name": "l2a_nc", "host": "pairwise", "lr_scale": 3.0}, "`objective.lr_scale` goes with proxies"),
        ({"loss_options": {"scal": 3.0}}, "`objective.loss_options.scal` is not known: did you mean `scale`"),
        ({"similarity": "cosin"}, "did you mean `cosine`"),
        ({"miner": "multi_similarity"}, "goes with `objective.name` = 'pairwise' only"),
        ({"name": "pairwise", "loss": "contrastive", "miner": "multi_similarty"}, "did you mean `multi_similarity"),
        ({"name": "pairwise", "loss": "contrastive", "pick": "semi_hard"}, "goes with a triplet loss, not with 'contrastive'"),
        ({"name": "pairwise", "loss": "triplet", "pick": "semihard"}, "did you mean `semi_hard`"),
        (
            {"name": "pairwise", "loss": "triplet", "pick": "batch_hard", "pick_options": {"k": 1}},
            "`objective.pick_options.k` is not known",
        ),
    ],
)
def test_names_become_objects_or_an_error_with_the_nearest_name(settings, message):
    with pytest.raises(ConfigError, match=message):
        build_objective(ObjectiveSettings(**settings), n_classes=3, dim=4)


def test_settings_of_hierarchical_proxies_reach_them():
    settings = ObjectiveSettings(
        name="hpl",
        loss="proxy_nca",
        lr_scale=7.0,
        coarse_sizes=(4, 2),
        level_weights=(1.0, 0.5, 0.25),
        refresh_every=5,
        warmup_steps=3,
        cluster_space="unit",
        clustering="agglomerative",
        update="offline",
        on_empty="keep",
    )
    objective = build_objective(settings, n_classes=9, dim=4, seed=2)
    found = objective.describe()["settings"]
    wanted = settings.model_dump(include={"refresh_every", "warmup_steps", "cluster_space", "clustering", "update", "on_empty"})
    assert {name: found[name] for name in wanted} == wanted
    assert [len(level.proxies) for level in objective.levels] == [4, 2]
    assert objective.level_weights == (1.0, 0.5, 0.25)
    assert objective.seed == 2
    assert objective.base.lr_scale == 7.0
    assert objective.base.loss.__name__ == "proxy_nca"
    default = build_objective(ObjectiveSettings(name="hpl"), n_classes=100, dim=4)
    assert [len(level.proxies) for level in default.levels] == [10]


def test_settings_of_novel_classes_reach_them_and_their_host():
    settings = ObjectiveSettings(
        name="l2a_nc",
        host="hpl",
        loss="proxy_nca",
        coarse_sizes=(4,),
        pretraining_epochs=3,
        novel_ratio=4.0,
        max_novel=20,
        generated_ratio=0.5,
        divergence="mmd",
        divergence_weight=0.25,
        noise_dim=8,
        hidden_dim=32,
    )
    objective = build_objective(settings, n_classes=9, dim=4, seed=2)
    found = objective.describe()
    wanted = settings.model_dump(
        include={"pretraining_epochs", "novel_ratio", "max_novel", "generated_ratio", "divergence_weight"}
    )
    assert {name: found["settings"][name] for name in wanted} == wanted
    assert found["settings"]["divergence"] == "mmd"
    assert objective.n_novel == 20
    assert objective.generator.network.noise_dim == 8
    assert objective.generator.network.out.in_features == 32
    assert objective.seed == 2
    assert found["base"]["class"] == "HierarchicalProxies"
    assert found["base"]["base"]["settings"]["loss"] == "proxy_nca"
    pairs = build_objective(
        ObjectiveSettings(name="l2a_nc", host="pairwise", loss="triplet", pretraining_epochs=1), n_classes=9, dim=4
    )
    assert (pairs.n_classes, pairs.dim, pairs.n_novel, pairs.novel_proxies) == (9, 4, 18, None)
    bound = ObjectiveSettings(
        name="l2a_nc", pretraining_epochs=1, divergence="sliced_wasserstein", divergence_options={"n_slices": 7}
    )
    assert build_objective(bound, n_classes=9, dim=4).divergence.keywords == {"n_slices": 7}


@pytest.mark.parametrize(("epochs", "pretraining"), [(10, 8), (60, 48), (2, 2), (1, 1)])
def test_pretraining_takes_four_fifths_of_the_epochs_where_nothing_else_is_said(epochs, pretraining):
    settings = ObjectiveSettings(name="l2a_nc")
    assert build_objective(settings, n_classes=3, dim=4, epochs=epochs).pretraining_epochs == pretraining
    with pytest.raises(ConfigError, match="`objective.pretraining_epochs` is not set, and the number of epochs is not known"):
        build_objective(settings, n_classes=3, dim=4)


def test_groups_of_hierarchical_proxies_come_from_the_table_or_by_chance(tiny_photos):
    train = build_table(DataSettings(root=str(tiny_photos))).of_split("train")
    given = ObjectiveSettings(name="hpl", hierarchy=("kind",))
    objective = build_objective(given, n_classes=6, dim=4, train=train)
    assert objective.levels[0].parent.tolist() == [0, 1, 0, 1, 0, 1]
    assert objective.update == "fixed"
    plain = build_objective(given.model_copy(update={"hierarchy": "kind"}), n_classes=6, dim=4, train=train)
    assert torch.equal(plain.levels[0].parent, objective.levels[0].parent)
    for wrong in ("learnt", ("kinds",)):
        with pytest.raises(
            ConfigError, match=r"`objective.hierarchy` = \['.*'\]: give learned, random, or levels .* Known: kind"
        ):
            build_objective(given.model_copy(update={"hierarchy": wrong}), n_classes=6, dim=4, train=train)
    dealt = ObjectiveSettings(name="hpl", hierarchy="random", coarse_sizes=(2,))
    found = [build_objective(dealt, n_classes=6, dim=4, seed=seed).levels[0].parent for seed in (0, 0, 1, 2, 3, 4)]
    assert torch.equal(found[0], found[1])
    assert len({tuple(parent.tolist()) for parent in found}) > 1
    assert torch.bincount(found[0]).tolist() == [3, 3]


def test_the_demos_characters_have_a_name_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("KINFOLD_CACHE", str(tmp_path))
    monkeypatch.setattr("kinfold.data.glyphs.write_glyphs", lambda folder: folder)
    assert build_table(DataSettings(root="kinfold:glyphs")) == tmp_path / "glyphs"


def test_options_reach_the_loss():
    objective = build_objective(ObjectiveSettings(loss_options={"scale": 16.0, "margin": 0.2}), n_classes=3, dim=4)
    assert objective.loss.keywords == {"scale": 16.0, "margin": 0.2}


@pytest.mark.parametrize("pick", ["all_triplets", "batch_hard", "semi_hard", "distance_weighted"])
def test_every_pick_of_triplets_can_be_named(pick):
    settings = ObjectiveSettings(name="pairwise", loss="triplet", loss_options={"margin": 0.3}, pick=pick)
    objective = build_objective(settings, n_classes=3, dim=4)
    x, label = torch.randn(12, 4), torch.arange(12) % 3
    given = Embedded(x, x, label, torch.arange(12), torch.zeros(12, dtype=torch.long))
    assert torch.isfinite(objective(given).total)


def test_semi_hard_takes_the_margin_of_the_loss():
    settings = ObjectiveSettings(name="pairwise", loss="triplet", loss_options={"margin": 0.3}, pick="semi_hard")
    assert build_objective(settings, n_classes=3, dim=4).loss.keywords["pick"].keywords == {"margin": 0.3}


def test_classes_are_kept_for_the_test_where_the_table_does_not_say(tiny_photos, tmp_path):
    for label in "abcd":
        (tmp_path / "photos" / label).mkdir(parents=True)
        for copy in range(2):
            (tmp_path / "photos" / label / f"{copy}.png").write_bytes(
                (tiny_photos / f"{'abcd'.index(label)}_{copy}.png").read_bytes()
            )
    table = build_table(DataSettings(root=str(tmp_path / "photos"), test_share=0.5, hold_out_every=2))
    splits = {label: split for label, split in zip(table.label, table.split, strict=True)}
    assert splits == {"a": "train", "b": "val", "c": "test", "d": "test"}
    with pytest.raises(ConfigError, match="has a test split of its own"):
        build_table(DataSettings(root=str(tiny_photos), test_share=0.5))


def test_the_root_may_hold_an_environment_variable(tiny_photos, monkeypatch):
    monkeypatch.setenv("PHOTOS", str(tiny_photos))
    assert len(build_table(DataSettings(root="$PHOTOS"))) == 64
    monkeypatch.delenv("PHOTOS")
    with pytest.raises(ConfigError, match=r"`data.root` = '\$PHOTOS': set that environment variable"):
        build_table(DataSettings(root="$PHOTOS"))
