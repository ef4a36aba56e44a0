"""The model card."""

import pytest

from kinfold.errors import ConfigError
from kinfold.models.card import model_card

CONFIG = {
    "trunk": {"name": "convnet"},
    "pool": "gem",
    "dim": 16,
    "preprocessing": {"size": 32},
    "fingerprint": "abc",
    "kinfold_version": "0",
    "format_version": 1,
}


def test_it_says_what_the_model_is_and_how_to_load_it():
    text = model_card(
        CONFIG, ["a", "b"], {"data": "drawings", "scores": {"recall_at_1": 0.5}, "licence": "MIT", "notes": "Small."}
    )
    for part in (
        "`convnet`",
        "16 numbers",
        "`gem`",
        "size 32",
        "drawings",
        "classes: 2",
        "MIT",
        "| recall_at_1 | 0.5 |",
        "Small.",
        "abc",
        "from_pretrained",
    ):
        assert part in text


def test_what_is_not_known_is_said_to_be_unknown():
    text = model_card(CONFIG, None, {})
    assert "not stated" in text
    assert "not recorded" in text
    assert "Scores" not in text


def test_a_misspelt_entry_is_named():
    with pytest.raises(ConfigError, match="`score` is not known: did you mean `scores`"):
        model_card(CONFIG, None, {"score": {}})
    with pytest.raises(ConfigError, match="metric names"):
        model_card(CONFIG, None, {"scores": 0.5})
