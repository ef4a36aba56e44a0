"""The whole check of a configuration: faults written on purpose into a file that is healthy."""

import copy

import pytest

from kinfold.build import build_table
from kinfold.checks.config import check_config
from kinfold.config import Config, read_config
from tests.checks.tiny import codes, the

HEALTHY = """
[data]
root = "{root}"
size = 24
[model]
trunk = "convnet"
dim = 16
[objective]
name = "proxy"
loss = "proxy_anchor"
[batches]
batch_size = 12
images_per_class = 3
crop_scale = [0.9, 1.0]
[optimizer]
learning_rate = 1e-3
[schedule]
kind = "cosine"
[train]
epochs = 2
accelerator = "cpu"
"""


@pytest.fixture
def checked(tiny_photos, tmp_path):
    """Return a function that checks the healthy file with overrides."""
    file = tmp_path / "healthy.toml"
    file.write_text(HEALTHY.format(root=tiny_photos.as_posix()), encoding="utf-8")

    def check(*overrides):
        config = read_config(file, [f"run={(tmp_path / 'run').as_posix()}", *overrides])
        before = copy.deepcopy(config)
        found = check_config(config, table=build_table(config.data))
        assert config == before and not (tmp_path / "run").exists()
        return found

    return check


def test_a_healthy_file_has_no_warning(checked):
    found = checked()
    assert codes(found) == []
    assert codes(found, "note")[-5:] == ["step_sizes", "speed", "estimated_time", "estimated_memory", "estimated_disk"]


def test_a_healthy_file_with_validation_a_frozen_trunk_and_half_the_digits(checked):
    found = checked(
        "data.hold_out_every=3", "model.frozen=trunk", "cache.views=2", "train.precision=bf16", "model.head_start=pca"
    )
    assert codes(found) == []
    assert "validation" in the(found, "estimated_time").message and "measuring" in the(found, "estimated_time").message


@pytest.mark.parametrize(
    "overrides, code, key",
    [
        (["optimizer.head.learning_rate=0.0"], "frozen_head", "optimizer.head.learning_rate"),
        (["optimizer.head.frozen_epochs=2"], "frozen_head", "optimizer.head.frozen_epochs"),
        (["optimizer.trunk.frozen_epochs=5"], "frozen_group", "optimizer.trunk.frozen_epochs"),
        (["optimizer.hed.learning_rate=0.1"], "unknown_group", "optimizer.hed"),
        (["stage.second.epochs=2"], "unknown_stage", "stage.second"),
        (["objective.lr_scale=1"], "slow_proxies", "objective.lr_scale"),
        (["objective.lr_scale=50", "optimizer.proxies.learning_rate=0.1"], "idle_setting", "objective.lr_scale"),
        (["schedule.warmup_epochs=2"], "warmup_too_long", "schedule.warmup_epochs"),
        (["batches.sampler=random"], "idle_setting", "batches.images_per_class"),
        (["batches.augment=false"], "idle_setting", "batches.crop_scale"),
        (["batches.batch_size=13"], "uneven_batch", "batches.batch_size"),
        (["batches.batch_size=24"], "few_classes", "batches.batch_size"),
        (["batches.batch_size=49"], "cannot_start_batches", "batch_size"),
        (["cache.views=2"], "limited_views", "cache.views"),
        (["cache.half=true"], "idle_setting", "cache.half"),
        (["train.early_stopping_patience=1"], "needs_validation", "train.early_stopping_patience"),
        (["train.monitor=recall"], "idle_setting", "train.monitor"),
        (["train.monitor=recall", "data.hold_out_every=3"], "unknown_monitor", "train.monitor"),
        (["evaluation.ks=[1, 99]"], "k_above_gallery", "evaluation.ks"),
        (["evaluation.split=val"], "nothing_measured", "evaluation.split"),
        (["evaluation.metrics=['recal']"], "bad_evaluation", "evaluation.metrics"),
        (["model.pretrained=true"], "idle_setting", "model.pretrained"),
        (["model.head_start=pca", "model.dim=none"], "bad_head_start", "model.head_start"),
        (["model.head_start=pca", "model.dim=500"], "bad_head_start", "model.dim"),
        (["model.head_start=pca", "model.dim=48"], "bad_head_start", "model.dim"),
        (["model.frozen=block"], "cannot_start_model", "block"),
        (["model.trunk=convnett"], "cannot_start_model", "convnett"),
        (["objective.loss=proxy_ancor"], "cannot_start_objective", "objective.loss"),
        (["data.resize=squash", "data.crop_ratio=0.5"], "idle_setting", "data.crop_ratio"),
        (["allow_shared_classes=true"], "idle_setting", "allow_shared_classes"),
    ],
)
def test_each_fault_is_found_and_names_its_key(checked, overrides, code, key):
    found = checked(*overrides)
    finding = the(found, code)
    assert key in finding.message + finding.remedy
    assert finding.severity in ("error", "warning")
    others = set(codes(found)) - {code}
    assert others <= {"unknown_group"}, "and nothing else is wrong"


def test_a_head_start_reads_where_features_are_kept(checked, tmp_path):
    cache = ["cache.half=true", f"cache.folder={(tmp_path / 'cache').as_posix()}", "cache.use=true"]
    assert codes(checked("model.head_start=pca", *cache)) == []
    assert codes(checked("model.head_start=pca", "cache.views=2", *cache)) == ["limited_views"]
    assert codes(checked(*cache)) == ["idle_setting"] * 3


def test_a_pair_loss_without_pairs_is_an_error(checked):
    found = checked("objective.name=pairwise", "objective.loss=contrastive", "batches.images_per_class=1", "batches.batch_size=6")
    assert codes(found) == ["no_positives"]


def test_faults_of_model_and_objective_are_told_together(checked):
    found = checked("model.trunk=convnett", "objective.loss=proxy_ancor", "evaluation.ks=[99]")
    assert codes(found) == ["cannot_start_model", "cannot_start_objective", "k_above_gallery"]


def test_a_table_of_one_training_class_stops_early(tiny_photos):
    config = Config(run="x", data={"root": str(tiny_photos)}, model={"trunk": "convnet"}, evaluation={"ks": [1]})
    table = build_table(config.data)
    one = table.subset([row for row in range(len(table)) if table.label[row] in ("class 0", "class 7")])
    assert codes(check_config(config, table=one)) == ["too_few_classes"]


def test_losses_that_make_no_sense_are_told_as_the_message_of_the_library(checked):
    found = checked("objective.loss_options.scale=wide")
    assert codes(found) == ["cannot_start_objective"]
