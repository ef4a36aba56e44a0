"""One experiment: what is trained, measured and recorded, and that it goes on where it stopped."""

from pathlib import Path

import numpy as np
import pytest
import torch

import kinfold
from kinfold.comparison.identity import identity_hash
from kinfold.comparison.per_query import read_per_query
from kinfold.comparison.record import read_record, record_file
from kinfold.config import Config
from kinfold.engine.watch import NoWatch
from kinfold.errors import ConfigError
from kinfold.experiment import Measuring, measure_run, run_experiment

SMALL = {
    "model": {"trunk": "convnet", "dim": 16},
    "batches": {"batch_size": 12},
    "optimizer": {"learning_rate": 1e-3},
    "train": {"epochs": 2, "log_every": 1, "checkpoint_steps": 1},
}


@pytest.fixture
def config(tiny_photos, tmp_path):
    def make(run="run", **changes):
        return Config(**{"run": str(tmp_path / run), "data": {"root": str(tiny_photos), "size": 24}, **SMALL, **changes})

    return make


def test_an_experiment_is_train_and_evaluate_in_one(config):
    settings = config()
    done = run_experiment(settings)
    table = kinfold.read_table(settings.data.root)
    objective = kinfold.Proxies(kinfold.losses.proxy_anchor, 6, 16)
    embedder = kinfold.Embedder("convnet", 16, size=24)
    trained = kinfold.fit(table, embedder, objective, run=Path(settings.run).parent / "alone", recipe=settings.recipe)
    alone = kinfold.evaluate(trained.embedder, table.of_split("test"))
    assert {level: found.metrics for level, found in done.scores.items()} == {
        level: found.metrics for level, found in alone.items()
    }


def test_record_values_per_query_and_scores_say_the_same(config):
    settings = config()
    done = run_experiment(settings)
    record = read_record(done.run.folder)
    kept = read_per_query(done.run.folder / "per_query_test.npz")
    assert record.identity == identity_hash(settings.model_dump(mode="json")) and not record.resumed
    assert record.n_steps == done.n_steps == 8 and record.seconds > 0
    assert record.protocol == kept.protocol
    for level, found in done.scores.items():
        assert record.metrics[level]["map_at_r"] == found.metrics["map_at_r"]
        np.testing.assert_allclose(kept.values_of(level, "map_at_r"), found.per_query["map_at_r"].numpy(), rtol=1e-6)
    table = kinfold.read_table(settings.data.root)
    assert kept.levels["label"].query.tolist() == table.of_split("test").item.tolist()


def test_the_record_is_written_last_and_an_interrupted_experiment_goes_on(config):
    class Stop(NoWatch):
        def tick(self, tick):
            if tick.progress.step == 5:
                raise RuntimeError

    with pytest.raises(RuntimeError):
        run_experiment(config(), watch=Stop())
    folder = Path(config().run)
    assert read_record(folder) is None and not (folder / "per_query_test.npz").exists()
    resumed, whole = run_experiment(config()), run_experiment(config("whole"))
    assert read_record(folder).resumed and not read_record(whole.run.folder).resumed
    assert read_record(folder).metrics == read_record(whole.run.folder).metrics
    assert resumed.n_steps == whole.n_steps


def test_again_it_measures_the_same_and_keeps_the_time_it_took(config):
    first = run_experiment(config())
    record = read_record(first.run.folder)
    again = run_experiment(config())
    assert again.scores["label"].metrics == first.scores["label"].metrics
    assert read_record(first.run.folder) == record


def test_levels_can_be_chosen_and_an_unknown_one_is_named(config):
    done = run_experiment(config(), levels=["kind"])
    assert list(done.scores) == ["kind"]
    assert read_record(done.run.folder).protocol["levels"] == ["kind"]
    assert done.scores["kind"].metrics == run_experiment(config("all")).scores["kind"].metrics
    with pytest.raises(ConfigError, match="level 'kinf' was not measured: did you mean `kind`"):
        run_experiment(config("other"), levels=["kinf"])


def test_nothing_is_measured_where_nothing_is_to_be(config):
    for run, evaluation in (("off", {"after_training": False}), ("empty", {"split": "val"})):
        done = run_experiment(config(run, evaluation=evaluation))
        record = read_record(done.run.folder)
        assert done.scores == {} and record.metrics == {} and record.protocol == {}


def test_embeddings_are_kept_unless_they_are_not_wanted(config):
    assert (run_experiment(config()).run.folder / "embeddings_test.npz").exists()
    lean = run_experiment(config("lean", evaluation={"keep_embeddings": False}))
    assert not (lean.run.folder / "embeddings_test.npz").exists() and (lean.run.folder / "per_query_test.npz").exists()


def test_measuring_may_leave_no_trace(config):
    settings = config()
    done = run_experiment(settings)
    before = {file.name: file.stat().st_mtime_ns for file in done.run.folder.iterdir()}
    embedder = kinfold.Embedder.from_pretrained(done.run.model)
    table = kinfold.read_table(settings.data.root)
    found = measure_run(done.run, embedder, table, settings.evaluation, how=Measuring(keeps=False))
    assert torch.equal(found.scores["label"].per_query["map_at_r"], done.scores["label"].per_query["map_at_r"])
    assert {file.name: file.stat().st_mtime_ns for file in done.run.folder.iterdir()} == before


@pytest.mark.parametrize(
    "evaluation", [{"metrics": ("recal_at_1",)}, {"coarse_metrics": ("recal_at_1",)}, {"similarity": "cosin"}, {"memory": "lots"}]
)
def test_a_misspelt_measure_is_found_before_training(config, evaluation):
    settings = config(evaluation=evaluation)
    with pytest.raises(ConfigError):
        run_experiment(settings)
    assert not Path(settings.run).exists()


def test_the_protocol_says_which_epoch_was_kept(config, tiny_photos):
    data = {"root": str(tiny_photos), "size": 24, "hold_out_every": 3}
    for run, every, expected in (("best", 1, "best epoch on validation classes"), ("last", 2, "last epoch")):
        done = run_experiment(config(run, data=data, train={"epochs": 2, "evaluate_every": every}))
        assert read_record(done.run.folder).protocol["selection"] == expected


def test_a_stale_record_of_another_configuration_does_not_lend_its_time(config):
    done = run_experiment(config())
    text = record_file(done.run.folder).read_text().replace('"identity": "', '"identity": "0')
    record_file(done.run.folder).write_text(text.replace('"seconds": ', '"seconds": 9999'))
    run_experiment(config())
    assert read_record(done.run.folder).seconds < 999


def test_the_levels_that_are_measured_can_be_chosen_and_a_misspelt_one_is_found_before_training(config):
    assert list(run_experiment(config("a", evaluation={"levels": ["label"]})).scores) == ["label"]
    assert list(run_experiment(config("b", evaluation={"levels": ["label", "kind"]})).scores) == ["label", "kind"]
    kept = kinfold.read_embeddings(Path(config("a").run) / "embeddings_test.npz")
    assert list(kept.levels) == ["kind"], "the file keeps all levels, whichever were measured"
    with pytest.raises(ConfigError, match="did you mean `kind`"):
        run_experiment(config("c", evaluation={"levels": ["knid"]}))
    assert not Path(config("c").run).exists()


def test_coarse_levels_are_measured_by_metrics_of_their_own(config):
    done = run_experiment(config(evaluation={"metrics": ("map_at_r",), "coarse_metrics": ("recall_at_k",), "ks": (1, 3)}))
    assert {level: list(found.metrics) for level, found in done.scores.items()} == {
        "label": ["map_at_r"],
        "kind": ["recall_at_1", "recall_at_3"],
    }
    kept = read_per_query(done.run.folder / "per_query_test.npz")
    assert list(kept.levels["kind"].values) == ["recall_at_1", "recall_at_3"]
    with pytest.raises(ConfigError, match=r"'map_at_r' was not measured on level `kind`, only recall_at_1, .*coarse_metrics"):
        kept.values_of("kind", "map_at_r")
