"""A tiny model, objective and recipe that are healthy, to be broken one by one."""

from functools import partial

import kinfold
from kinfold.checks.finding import Finding
from kinfold.losses import contrastive, proxy_anchor

DIM = 16
HEALTHY = {
    "batches": {"batch_size": 12, "images_per_class": 3, "crop_scale": (0.9, 1.0)},
    "optimizer": {"learning_rate": 1e-3, "proxies": {"learning_rate": 1e-2}},
    "schedule": {"kind": "cosine"},
    "train": {"epochs": 2, "accelerator": "cpu"},
}
WITHOUT_PROXIES = {**HEALTHY, "optimizer": {"learning_rate": 1e-3}}


def recipe(base=HEALTHY, **changes) -> kinfold.Recipe:
    """Return the healthy recipe with changes, one level deep."""
    merged = {key: {**base.get(key, {}), **value} if isinstance(value, dict) else value for key, value in changes.items()}
    return kinfold.Recipe(**{**base, **merged})


def embedder() -> kinfold.Embedder:
    return kinfold.Embedder("convnet", dim=DIM, size=24, seed=3)


def proxies(table, **how) -> kinfold.Proxies:
    return kinfold.Proxies(proxy_anchor, table.of_split("train").n_classes, DIM, **how)


def pairwise(**options) -> kinfold.Pairwise:
    return kinfold.Pairwise(partial(contrastive, **options))


def codes(findings: list[Finding], *severities: str) -> list[str]:
    """Return the codes of the findings of some severities, in order."""
    return [finding.code for finding in findings if finding.severity in (severities or ("error", "warning"))]


def the(findings: list[Finding], code: str) -> Finding:
    """Return the one finding of a code."""
    (found,) = [finding for finding in findings if finding.code == code]
    return found
