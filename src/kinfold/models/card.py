"""The model card that lies beside a saved model."""

from collections.abc import Mapping, Sequence

from kinfold.errors import ConfigError, did_you_mean

CARD_ENTRIES = ("data", "scores", "licence", "notes")


def model_card(config: Mapping[str, object], classes: Sequence[str] | Sequence[int] | None, card: Mapping[str, object]) -> str:
    """Return the text of the card, in Markdown.

    Args:
        config: what `config.json` holds.
        classes: the training classes.
        card: `data`, `licence`, `notes` (text) and `scores` (metric → number), each optional.

    Raises:
        ConfigError: another entry, or scores that are no mapping.
    """
    for entry in card:
        if entry not in CARD_ENTRIES:
            raise ConfigError(f"model card entry `{entry}` is not known: {did_you_mean(entry, CARD_ENTRIES)}")
    trunk = config["trunk"]["name"]  # pyright: ignore[reportIndexIssue]
    n_classes = "not recorded" if classes is None else len(classes)
    licence = card.get("licence", "not stated; the licences of the training images and of the initial weights apply")
    lines = [
        f"# Image embedding model on `{trunk}`",
        "",
        "Maps images to embeddings for retrieval and clustering, also of classes that it was not trained on.",
        "",
        f"- Embedding: {config['dim'] or 'the pooled feature'} numbers, not normalised; compare them by cosine similarity.",
        f"- Trunk: `{trunk}`, pooling `{config['pool']}`.",
        f"- Preprocessing: {', '.join(f'{key} {value}' for key, value in config['preprocessing'].items())}.",  # pyright: ignore[reportAttributeAccessIssue]
        f"- Training data: {card.get('data', 'not stated')}. Training classes: {n_classes}.",
        f"- Licence: {licence}.",
        f"- Fingerprint: `{config['fingerprint']}`.",
        f"- Written by Kinfold {config['kinfold_version']}, format {config['format_version']}.",
    ]
    lines += _scores(card.get("scores"))
    if "notes" in card:
        lines += ["", "## Notes", "", str(card["notes"])]
    lines += ["", "## Use", "", "```python", "import kinfold", ""]
    lines += ['embedder = kinfold.Embedder.from_pretrained("this/folder")', 'embedding = embedder.embed(["image.jpg"])', "```"]
    return "\n".join(lines) + "\n"


def _scores(scores: object) -> list[str]:
    if scores is None:
        return []
    if not isinstance(scores, Mapping):
        raise ConfigError(f"model card entry `scores` is {scores!r}: give metric names with their numbers.")
    rows = [f"| {name} | {value} |" for name, value in scores.items()]
    return ["", "## Scores", "", "| metric | value |", "| --- | --- |", *rows]
