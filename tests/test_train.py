"""From a table of images to a finished model: what is trained on, what is kept, what is refused."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import kinfold
from kinfold.engine.watch import NoWatch
from kinfold.losses import multi_similarity, proxy_anchor
from kinfold.objectives.base import Objective
from tests.killing import KillAt, Killed

SMALL = {
    "batches": {"batch_size": 12, "images_per_class": 3, "crop_scale": (0.9, 1.0)},
    "optimizer": {"learning_rate": 1e-3, "proxies": {"learning_rate": 1e-2}},
    "schedule": {"kind": "cosine"},
}


def recipe(**changes) -> kinfold.Recipe:
    return kinfold.Recipe(**{**SMALL, "train": {"epochs": 2, "log_every": 1}, **changes})


def embedder() -> kinfold.Embedder:
    return kinfold.Embedder("convnet", dim=16, size=24, seed=3)


def proxies(table) -> kinfold.Proxies:
    return kinfold.Proxies(proxy_anchor, table.of_split("train").n_classes, 16)


@pytest.fixture
def table(tiny_photos):
    return kinfold.read_table(tiny_photos)


def test_the_whole_line_from_table_to_loaded_model(table, tmp_path):
    trained = kinfold.fit(table, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe(train={"epochs": 6}))
    scores = kinfold.evaluate(trained.embedder, table.of_split("test"))
    assert list(scores) == ["label", "kind"]
    assert scores["label"].metrics["recall_at_1"] >= 0.75, "two classes never trained on; chance is 7 in 15"
    loaded = kinfold.Embedder.from_pretrained(trained.run.model)
    paths = [table.image_path(row) for row in range(5)]
    assert torch.equal(loaded.embed(paths), trained.embedder.embed(paths))
    assert loaded.classes == list(table.of_split("train").classes)
    card = (trained.run.model / "README.md").read_text()
    assert "48 images of 6 classes" in card


def test_pair_losses_train_too(table, tmp_path):
    no_proxies = recipe(optimizer={"learning_rate": 1e-3})
    trained = kinfold.fit(table, embedder(), kinfold.Pairwise(multi_similarity), run=tmp_path / "run", recipe=no_proxies)
    assert "pairs" in trained.run.rows()[0]


def test_no_class_of_the_test_split_reaches_training(table, tmp_path):
    seen = set()

    class Look(NoWatch):
        def tick(self, tick):
            seen.add(tick.progress.step)

    rows = table.split_rows("test")
    broken = replace(table, path=tuple("gone.png" if row in set(rows.tolist()) else path for row, path in enumerate(table.path)))
    kinfold.fit(broken, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe(), watch=Look())
    assert max(seen) == 2 * (48 // 12), "an epoch is n_images // batch_size batches"


def test_held_out_classes_choose_the_best_epoch(table, tmp_path):
    held = kinfold.hold_out_classes(table, every=3)
    trained = kinfold.fit(held, embedder(), proxies(held), run=tmp_path / "run", recipe=recipe(train={"epochs": 3}))
    assert len(trained.progress.evaluations) == 3
    best = trained.progress.best_epoch
    values = [row["val/recall_at_1"] for row in trained.progress.evaluations]
    assert values.index(max(values)) == best
    val = kinfold.evaluate(kinfold.Embedder.from_pretrained(trained.run.model), held.of_split("val"))["label"]
    assert val.metrics["recall_at_1"] == pytest.approx(max(values))


def test_classes_on_both_sides_are_refused_unless_allowed(table, tmp_path):
    leaky = replace(table, label=("class 0", *table.label[1:-1], "class 0"), levels={})
    with pytest.raises(kinfold.DataError, match="both train and test: 'class 0'"):
        kinfold.fit(leaky, embedder(), proxies(leaky), run=tmp_path / "run", recipe=recipe())
    kinfold.fit(leaky, embedder(), proxies(leaky), run=tmp_path / "run", recipe=recipe(allow_shared_classes=True))


def test_an_objective_for_another_number_of_classes_is_refused(table, tmp_path):
    with pytest.raises(kinfold.ShapeError, match="made for 7 classes but the training split has 6"):
        kinfold.fit(table, embedder(), kinfold.Proxies(proxy_anchor, 7, 16), run=tmp_path / "run", recipe=recipe())


def test_one_class_cannot_be_trained_on(table, tmp_path):
    one = table.subset([row for row in range(len(table)) if table.label[row] == "class 0"])
    with pytest.raises(kinfold.DataError, match=r"has 1 class\(es\): at least 2"):
        kinfold.fit(one, embedder(), proxies(one), run=tmp_path / "run", recipe=recipe())


def test_a_run_goes_on_only_with_the_same_images_and_recipe(table, tmp_path):
    kinfold.fit(table, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe())
    with pytest.raises(kinfold.ConfigError, match="differs in `recipe.train.epochs`"):
        kinfold.fit(table, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe(train={"epochs": 3, "log_every": 1}))
    fewer = table.subset(np.arange(1, len(table)))
    with pytest.raises(kinfold.ConfigError, match="differs in `data_fingerprint`"):
        kinfold.fit(fewer, embedder(), proxies(fewer), run=tmp_path / "run", recipe=recipe())


def test_other_groups_of_hierarchical_batches_are_another_run(table, tmp_path):
    batches = {"batch_size": 12, "images_per_class": 2, "sampler": "hierarchical", "level": "kind", "classes_per_group": 2}
    kinfold.fit(table, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe(batches=batches))
    other = replace(table, levels={"kind": tuple(f"{name[-1] > '2'}" for name in table.label)})
    with pytest.raises(kinfold.ConfigError, match="differs in `batch_groups`"):
        kinfold.fit(other, embedder(), proxies(other), run=tmp_path / "run", recipe=recipe(batches=batches))


def test_another_objective_or_preprocessing_is_another_run(table, tmp_path):
    kinfold.fit(table, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe())
    other = kinfold.Proxies(partial(proxy_anchor, margin=0.3), 6, 16)
    with pytest.raises(kinfold.ConfigError, match="differs in `objective_object.settings.loss"):
        kinfold.fit(table, embedder(), other, run=tmp_path / "run", recipe=recipe())
    larger = kinfold.Embedder("convnet", dim=16, size=32, seed=3)
    with pytest.raises(kinfold.ConfigError, match="differs in `embedder.preprocessing.size`"):
        kinfold.fit(table, larger, proxies(table), run=tmp_path / "run", recipe=recipe())


def test_a_saved_model_is_not_taken_for_a_run(table, tmp_path):
    embedder().save_pretrained(tmp_path / "model")
    with pytest.raises(kinfold.ConfigError, match="not empty and holds no run"):
        kinfold.fit(table, embedder(), proxies(table), run=tmp_path / "model", recipe=recipe())
    kinfold.Embedder.from_pretrained(tmp_path / "model")


def test_an_objective_for_another_dimension_is_refused(table, tmp_path):
    with pytest.raises(kinfold.ShapeError, match="made for embeddings of 8 numbers but the embedder gives 16"):
        kinfold.fit(table, embedder(), kinfold.Proxies(proxy_anchor, 6, 8), run=tmp_path / "run", recipe=recipe())


def test_what_needs_validation_classes_is_refused_without_them(table, tmp_path):
    for changes in ({"train": {"epochs": 2, "early_stopping_patience": 1}}, {"schedule": {"kind": "plateau"}}):
        with pytest.raises(kinfold.ConfigError, match="need classes to validate on"):
            kinfold.fit(table, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe(**changes))
    held = kinfold.hold_out_classes(table, every=3)
    with pytest.raises(kinfold.ConfigError, match="did you mean `map_at_r`"):
        kinfold.fit(held, embedder(), proxies(held), run=tmp_path / "run", recipe=recipe(train={"epochs": 2, "monitor": "map"}))


def test_a_broken_validation_image_is_skipped_too(table, tmp_path):
    held = kinfold.hold_out_classes(table, every=3)
    number = held.split_rows("val")[3]
    for row in range(len(held)):
        content = b"broken" if row == number else held.image_path(row).read_bytes()
        (tmp_path / held.path[row]).write_bytes(content)
    broken = replace(held, root=tmp_path)
    skipping = recipe(batches={**SMALL["batches"], "on_broken": "skip"})
    trained = kinfold.fit(broken, embedder(), proxies(held), run=tmp_path / "run", recipe=skipping)
    assert [Path(name).name for name in trained.run.metrics()["left_out"]] == [held.path[number]]
    assert len(trained.progress.evaluations) == 2


def broken_copy(table, tmp_path: Path, content: bytes):
    for row in range(len(table)):
        target = tmp_path / table.path[row]
        target.write_bytes(content if row == 10 else table.image_path(row).read_bytes())
    return replace(table, root=tmp_path)


@pytest.mark.parametrize("content", [b"", b"not an image", b"\x89PNG\r\n\x1a\n broken"])
def test_a_broken_image_stops_with_its_name_or_is_skipped_and_counted(table, tmp_path, content):
    broken = broken_copy(table, tmp_path, content)
    with pytest.raises(kinfold.DataError, match=r"1_2\.png"):
        kinfold.fit(broken, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe())
    skipping = recipe(batches={**SMALL["batches"], "on_broken": "skip"})
    trained = kinfold.fit(broken, embedder(), proxies(table), run=tmp_path / "skipped", recipe=skipping)
    left_out = json.loads((trained.run.folder / "metrics.json").read_text())["left_out"]
    assert [Path(name).name for name in left_out] == ["1_2.png"]


@pytest.mark.parametrize(
    "labels", [list("abcdef"), [2**24 + i for i in range(6)], [2**53 + i for i in range(6)], [2**70 + i for i in range(6)]]
)
def test_labels_of_any_kind_stay_apart(tiny_photos, tmp_path, labels):
    paths = [str(tiny_photos / f"{number}_{copy}.png") for number in range(6) for copy in range(8)]
    column = [labels[number] for number in range(6) for copy in range(8)]
    table = kinfold.read_table({"path": paths, "label": column, "split": ["train"] * 32 + ["test"] * 16})
    assert table.n_classes == 6
    trained = kinfold.fit(table, embedder(), kinfold.Proxies(proxy_anchor, 4, 16), run=tmp_path / "run", recipe=recipe())
    assert kinfold.Embedder.from_pretrained(trained.run.model).classes == labels[:4]
    scores = kinfold.evaluate(trained.embedder, table.of_split("test"))["label"]
    assert [row["label"] for row in scores.per_class()] == labels[4:]


def test_the_callers_generators_are_left_alone(table, tmp_path):
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    for _ in range(2):  # a fresh run, then one that finds a checkpoint
        kinfold.fit(table, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe())
        assert torch.equal(before[0], torch.get_rng_state())
        assert (before[1] == np.random.get_state()[1]).all()


def test_two_runs_of_one_seed_are_equal_and_another_seed_differs(table, tmp_path):
    def weights(name, seed=0):
        trained = kinfold.fit(table, embedder(), proxies(table), run=tmp_path / name, recipe=recipe(seed=seed))
        return trained.embedder.fingerprint()

    assert weights("a") == weights("b") != weights("c", seed=1)


def test_a_killed_run_ends_with_the_same_model_and_numbers(table, tmp_path):
    each_step = recipe(
        train={"epochs": 3, "log_every": 1, "checkpoint_steps": 2}, batches={**SMALL["batches"], "color_jitter": 0.3}
    )
    held = kinfold.hold_out_classes(table, every=3)
    whole = kinfold.fit(held, embedder(), proxies(held), run=tmp_path / "whole", recipe=each_step)
    with pytest.raises(Killed):
        kinfold.fit(held, embedder(), proxies(held), run=tmp_path / "killed", recipe=each_step, watch=KillAt(6))
    resumed = kinfold.fit(held, embedder(), proxies(held), run=tmp_path / "killed", recipe=each_step)
    assert resumed.embedder.fingerprint() == whole.embedder.fingerprint()
    assert resumed.progress.evaluations == whole.progress.evaluations
    speed = ("images_per_second", "wait_share", "time")
    rows = [[{k: v for k, v in row.items() if k not in speed} for row in run.rows()] for run in (resumed.run, whole.run)]
    assert rows[0] == rows[1]


def test_an_objective_may_embed_the_training_set_once_an_epoch(table, tmp_path):
    seen = []

    class Asks(Objective):
        def __init__(self):
            super().__init__()
            self.inner = proxies(table)

        def forward(self, batch, phase="main"):
            return self.inner(batch)

        def parameter_groups(self):
            return self.inner.parameter_groups()

        def on_epoch_start(self, epoch, train_set):
            embedded = train_set.embed()
            assert train_set.embed() is embedded, "asked twice, embedded once"
            assert train_set.n_classes == 6
            seen.append(embedded)

    model = embedder()
    untrained = kinfold.embed_table(model, table.of_split("train")).embedding
    kinfold.fit(table, model, Asks(), run=tmp_path / "run", recipe=recipe())
    assert torch.equal(seen[0].embedding, untrained)
    assert not torch.equal(seen[1].embedding, untrained), "the second epoch sees the model as it is then"
    assert seen[0].item.tolist() == table.of_split("train").item.tolist()


def test_embedding_a_table_and_embedding_its_files_agree(table):
    model = embedder()
    rows = table.of_split("test")
    paths = [rows.image_path(row) for row in range(len(rows))]
    torch.testing.assert_close(kinfold.embed_table(model, rows).embedding, model.embed(paths))


def test_any_data_set_of_images_and_labels_trains_and_is_measured(table, tmp_path):
    class Pictures(torch.utils.data.Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, row):
            with Image.open(self.rows.image_path(row)) as image:
                return image.convert("RGB"), self.rows.label[row]

    train = kinfold.table_from_dataset(Pictures(table.of_split("train")))
    trained = kinfold.fit(train, embedder(), proxies(table), run=tmp_path / "run", recipe=recipe())
    same = kinfold.fit(table, embedder(), proxies(table), run=tmp_path / "files", recipe=recipe())
    assert trained.embedder.fingerprint() == same.embedder.fingerprint(), "where the images come from changes nothing"
    test = kinfold.table_from_dataset(Pictures(table.of_split("test")), split="test")
    ours, theirs = (kinfold.evaluate(trained.embedder, rows)["label"].metrics for rows in (test, table.of_split("test")))
    assert ours == theirs
    with pytest.raises(kinfold.DataError, match="image 0 of list is a tensor: give the data set without its transform"):
        kinfold.evaluate(trained.embedder, kinfold.table_from_dataset([(torch.zeros(3, 24, 24), 0)] * 4))


def test_flags_of_queries_and_gallery_decide_who_searches_whom(table):
    n = len(table)
    flagged = replace(table, is_query=np.arange(n) % 2 == 0, is_gallery=np.arange(n) % 2 == 1)
    scores = kinfold.evaluate(embedder(), flagged.of_split("test"))["label"]
    assert (scores.settings["n_queries"], scores.settings["n_gallery"]) == (8, 8)


def test_an_image_of_every_mode_trains(tmp_path):
    modes = ["RGB", "L", "1", "P", "RGBA", "LA", "CMYK", "I;16"]
    rows = {"path": [], "label": []}
    random = np.random.default_rng(0)
    for number in range(3):
        for mode in modes:
            grey = Image.fromarray(random.integers(0, 255, (24, 24), dtype=np.uint8))
            if mode == "I;16":
                image = Image.fromarray(np.asarray(grey, dtype=np.uint16) * 257)
            else:
                image = grey.convert("RGB").convert(mode) if mode != "LA" else grey.convert("LA")
            name = f"{number}_{mode.replace(';', '')}.{'tif' if mode in ('CMYK', 'I;16') else 'png'}"
            image.save(tmp_path / name)
            rows["path"].append(str(tmp_path / name))
            rows["label"].append(f"class {number}")
    table = kinfold.read_table(rows)
    objective = kinfold.Proxies(proxy_anchor, 3, 16)
    trained = kinfold.fit(table, embedder(), objective, run=tmp_path / "run", recipe=recipe())
    assert trained.progress.step == 2 * (24 // 12)
