"""What is wrong with how a configuration measures the finished model."""

from collections.abc import Callable
from typing import Any

from kinfold.checks.finding import Finding
from kinfold.checks.idle import idle
from kinfold.config import Config, EvaluationSettings
from kinfold.data.table import Table
from kinfold.errors import KinfoldError
from kinfold.evaluation.memory import bytes_of
from kinfold.evaluation.metric_names import metrics_of
from kinfold.evaluation.spaces import function_of


def measuring_findings(config: Config, table: Table) -> list[Finding]:
    """Look at `[evaluation]`.

    Returns:
        `bad_evaluation` (error): an unknown metric, similarity or size. `k_above_gallery` (warning): there are not so many images to
        find. `nothing_measured`, `measured_on_trained` (warning): the split is empty, or was trained on. `other_similarity` (note):
        training and evaluation compare differently. `idle_setting` (warning).
    """
    settings = config.evaluation
    checks: dict[str, Callable[[], Any]] = {
        "metrics": lambda: metrics_of(settings.metrics, settings.ks),
        "similarity": lambda: function_of(settings.similarity),
        "memory": lambda: bytes_of(settings.memory),
    }
    if settings.coarse_metrics is not None:
        checks["coarse_metrics"] = lambda: metrics_of(settings.coarse_metrics, settings.ks)
    found = [finding for key, check in checks.items() for finding in _refused(key, check)]
    return [*found, *_ks(settings, table), *_split(settings, table), *_similarity(config)]


def _refused(key: str, check: Callable[[], Any]) -> list[Finding]:
    try:
        check()
    except KinfoldError as error:
        return [
            Finding("bad_evaluation", "error", f"`evaluation.{key}`: {error}", "the run would stop there: do as the message says")
        ]
    return []


def n_measured(config: Config, table: Table) -> int:
    """Return how many images are embedded once training has ended."""
    return table.split_rows(config.evaluation.split).size if config.evaluation.after_training else 0


def _ks(settings: EvaluationSettings, table: Table) -> list[Finding]:
    of_k = ("recall_at_k", "precision_at_k")
    named = None if settings.metrics is None else {*settings.metrics, *(settings.coarse_metrics or ())}
    if named is not None and not named & set(of_k):
        return idle(settings, "evaluation", {"ks": f"neither {' nor '.join(of_k)} is among `evaluation.metrics`"})
    n = n_to_find(table, settings.split)
    large = [k for k in settings.ks if k > n]
    if not large or not table.split_rows(settings.split).size:
        return []
    message = f"`evaluation.ks` holds {', '.join(map(str, large))}, but a query of {settings.split} can find {n:,} images"
    return [Finding("k_above_gallery", "warning", message, f"keep evaluation.ks at or below {n:,}: larger ones find everything")]


def n_to_find(table: Table, split: str) -> int:
    """Return how many images a query of a split can find at most."""
    rows = table.split_rows(split)
    if table.is_query is not None and table.is_gallery is not None:
        query, gallery = table.is_query[rows], table.is_gallery[rows]
        if query.any() and gallery.any():
            return int(gallery.sum()) - int((query <= gallery).all())  # where every query is in the gallery, it leaves itself out
    return max(0, len(rows) - 1)


def _split(settings: EvaluationSettings, table: Table) -> list[Finding]:
    if not settings.after_training:
        return []
    split = settings.split
    if not table.split_rows(split).size:
        message = f"`evaluation.split` = {split!r} has no images: nothing is measured after training"
        remedy = "bring images of that split, name another, or set evaluation.after_training = false"
        return [Finding("nothing_measured", "warning", message, remedy)]
    if split == "train":
        message = "`evaluation.split` = 'train' measures on the classes that are trained on: it says little about unseen ones"
        return [Finding("measured_on_trained", "warning", message, "set evaluation.split = 'test'")]
    return []


def _similarity(config: Config) -> list[Finding]:
    trained, measured = config.objective.similarity, config.evaluation.similarity
    if trained == measured:
        return []
    message = f"`objective.similarity` = {trained!r} is trained, `evaluation.similarity` = {measured!r} is measured"
    return [Finding("other_similarity", "note", message, "make them equal, unless the difference is the experiment")]
