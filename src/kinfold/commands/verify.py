"""`kinfold verify`: same class or not, by a threshold fitted on held-out classes and applied to others."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kinfold.commands.models import load_model
from kinfold.commands.output import percent, print_json, print_table, say
from kinfold.commands.targets import embedded, embeddings_of_split, own_table, rows_of_split
from kinfold.data.read import read_table
from kinfold.data.table import SPLITS
from kinfold.embeddings import SUFFIXES, EmbeddingTable, read_embeddings
from kinfold.engine.run import Run
from kinfold.errors import ConfigError, DataError, did_you_mean
from kinfold.evaluation.memory import bytes_of
from kinfold.evaluation.rates import Rates
from kinfold.evaluation.spaces import function_of
from kinfold.evaluation.threshold import Threshold, check_apart, threshold_from
from kinfold.evaluation.verification import Verification, false_accept_rates, verification

Fitted = tuple[Threshold, Rates]


@dataclass(frozen=True)
class VerifyOptions:
    """What can be set on the command line; texts as they were typed."""

    table: str | None = None
    fit_on: str = "val"
    split: str | None = None
    far: str = "1e-3,1e-2"
    similarity: str = "cosine"
    memory: str = "512MB"
    size: int | None = None
    workers: int = 0
    device: str | None = None
    allow_shared_classes: bool = False

    @property
    def fars(self) -> tuple[float, ...]:
        """The false accept rates."""
        return false_accept_rates([text.strip() for text in self.far.split(",")])

    def check(self) -> None:
        """Find mistakes before anything is embedded."""
        for option, split in (("--fit-on", self.fit_on), ("--split", self.split or "test")):
            if split not in SPLITS:
                raise ConfigError(f"{option} {split!r}: {did_you_mean(split, SPLITS)}")
        if self.fit_on == (self.split or "test"):
            raise ConfigError(
                f"--fit-on and --split are both {self.fit_on!r}: a threshold is fitted on other classes than it is judged by."
            )
        _ = self.fars, function_of(self.similarity), bytes_of(self.memory)


def verify_command(target: str, options: VerifyOptions, *, as_json: bool) -> None:
    """Print EER, AUC and TAR at each FAR, and what thresholds fitted on held-out classes do."""
    options.check()
    judged, held_out = _from_file(target, options) if Path(target).suffix in SUFFIXES else _from_model(target, options)
    found = _verified(judged, options, options.split or "test")
    fitted, failures = list[Fitted](), list[str]()
    if held_out is None:
        failures = [
            f"no threshold: there is no row in split {options.fit_on!r} to fit one on. Hold out classes of the training classes "
            "(data.hold_out_every = 5 in the configuration, or `hold_out_classes`), or name another split with --fit-on."
        ]
    else:
        if options.fit_on == "train":
            say(
                "a model separates the classes it was trained on better than others: a threshold fitted on them promises too much."
            )
        fitted, failures = _fitted(_verified(held_out, options, options.fit_on), judged, options)
    if as_json:
        print_json(_record(found, fitted, failures, options, has_fit=held_out is not None))
    else:
        _show(found, fitted, failures, options, title=f"{target}, {options.split or 'test'}")


def _from_file(file: str, options: VerifyOptions) -> tuple[EmbeddingTable, EmbeddingTable | None]:
    """Return the rows that are judged and those held out, if there are any."""
    if options.table is not None or options.size is not None:
        raise ConfigError(f"{file} holds embeddings: --table and --size are for models.")
    embeddings = read_embeddings(file)
    if not embeddings.split and options.split is None:
        return embeddings, None
    judged, held_out = (embeddings_of_split(embeddings, split) for split in (options.split or "test", options.fit_on))
    if not len(judged):
        raise DataError(f"{file} has no row in split {options.split or 'test'!r}.")
    _check_apart(held_out.label, judged.label, options)
    return judged, held_out if len(held_out) else None


def _from_model(target: str, options: VerifyOptions) -> tuple[EmbeddingTable, EmbeddingTable | None]:
    """Embed the rows that are judged and those held out, if there are any."""
    if options.table is not None:
        table = read_table(options.table)
    elif Run(target).exists:
        table = own_table(Run(target).config())
    else:
        raise ConfigError(f"{target} is a model: say which images to measure it on with --table.")
    split = options.split or "test"
    judged, held_out = rows_of_split(table, split), table.of_split(options.fit_on)
    _check_apart(held_out.label, judged.label, options)
    embedder = load_model(target, size=options.size, device=options.device)
    rest = embedded(embedder, held_out, options.fit_on, workers=options.workers) if len(held_out) else None
    return embedded(embedder, judged, split, workers=options.workers), rest


def _check_apart(fitted: tuple[int | str, ...], judged: tuple[int | str, ...], options: VerifyOptions) -> None:
    if not options.allow_shared_classes:
        check_apart(fitted, judged)


def _columns(embeddings: EmbeddingTable) -> dict[str, Any]:
    return {"item": embeddings.item, **embeddings.sides}


def _verified(embeddings: EmbeddingTable, options: VerifyOptions, split: str) -> Verification:
    settings = {"fars": options.fars, "similarity": options.similarity, "memory": options.memory}
    try:
        return verification(embeddings.embedding, embeddings.label, **_columns(embeddings), **settings)
    except DataError as error:
        raise DataError(f"split {split!r}: {error}") from None


def _fitted(found: Verification, judged: EmbeddingTable, options: VerifyOptions) -> tuple[list[Fitted], list[str]]:
    """Return a threshold for each FAR and for equal errors, with what it does on the judged rows, and why any is missing."""
    fitted, failures = list[Fitted](), list[str]()
    for goal in [*({"far": far} for far in options.fars), {"eer": True}]:
        try:
            threshold = threshold_from(found, **goal)
        except DataError as error:
            failures.append(str(error))
            continue
        rates = threshold.apply(
            judged.embedding,
            judged.label,
            **_columns(judged),
            memory=options.memory,
            allow_shared_classes=options.allow_shared_classes,
        )
        fitted.append((threshold, rates))
    return fitted, failures


def _record(
    found: Verification, fitted: list[Fitted], failures: list[str], options: VerifyOptions, *, has_fit: bool
) -> dict[str, Any]:
    return {
        "split": options.split or "test",
        **found.to_dict(),
        "fitted_on": options.fit_on if has_fit else None,
        "thresholds": [{**threshold.to_dict(), "applied": rates.to_dict()} for threshold, rates in fitted],
        "not_fitted": failures,
    }


def _show(found: Verification, fitted: list[Fitted], failures: list[str], options: VerifyOptions, *, title: str) -> None:
    rows = [["AUC", percent(found.auc), "", ""], ["EER", percent(found.eer), *_where(found.at_eer)]]
    for far, rates in found.tar_at_far.items():
        rows.append([f"TAR at FAR {_fine(far)} %", *(["–", "", ""] if rates is None else [percent(rates.tar), *_where(rates)])])
    rows.append(["positive pairs", f"{found.n_positive:,}", "", ""])
    rows.append(["negative pairs", f"{found.n_negative:,}", "", ""])
    print_table(["%", "", "similarity", "false accepts"], rows, title=title)
    for far, rates in found.tar_at_far.items():
        if rates is None:
            print(f"TAR at FAR {_fine(far)} %: {found.unresolved(far)}")
    if fitted:
        own, other = options.fit_on, options.split or "test"
        names = ["fitted for", "similarity >=", f"FAR {own}", f"TAR {own}", f"FAR {other}", f"TAR {other}", f"accuracy {other}"]
        lines = [
            [
                threshold.fitted_for,
                f"{threshold.value:.4g}",
                *(_fine(rate) for rate in (threshold.fitted.far, threshold.fitted.tar, rates.far, rates.tar, rates.accuracy)),
            ]
            for threshold, rates in fitted
        ]
        print_table(names, lines, title=f"\nthresholds fitted on {own}, applied to {other}, %")
    for failure in failures:
        print(failure)


def _where(rates: Rates) -> list[str]:
    return [f"{rates.threshold:.4g}" if math.isfinite(rates.threshold) else "none", f"{rates.n_false_accepts:,}"]


def _fine(rate: float) -> str:
    """Return a share in percent with three digits that count."""
    return f"{100 * rate:.3g}"
