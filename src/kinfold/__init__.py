"""Kinfold: image embeddings that keep working on classes never seen."""

import importlib
from typing import Any

_HOME = {
    "Agreement": "kinfold.evaluation.agreement",
    "BatchSettings": "kinfold.recipe",
    "CacheSettings": "kinfold.recipe",
    "ConfigError": "kinfold.errors",
    "ConsoleWatch": "kinfold.console",
    "DataError": "kinfold.errors",
    "Embedded": "kinfold.records",
    "Embedder": "kinfold.models.embedder",
    "EmbeddingExpansion": "kinfold.objectives.embedding_expansion",
    "EmbeddingTable": "kinfold.embeddings",
    "FeatureCache": "kinfold.models.feature_cache",
    "Finding": "kinfold.checks.finding",
    "GeneratedClasses": "kinfold.novel_run",
    "Hierarchy": "kinfold.core.hierarchy",
    "HierarchicalProxies": "kinfold.objectives.hpl",
    "HierarchyScores": "kinfold.evaluation.hierarchy_scores",
    "Interrupted": "kinfold.errors",
    "KinfoldError": "kinfold.errors",
    "Losses": "kinfold.records",
    "MissingExtraError": "kinfold.errors",
    "Neighbours": "kinfold.records",
    "NovelClasses": "kinfold.objectives.l2a_nc",
    "Objective": "kinfold.objectives.base",
    "OutsideShare": "kinfold.evaluation.outside",
    "Pairs": "kinfold.records",
    "Pairwise": "kinfold.objectives.pairwise",
    "ParamGroup": "kinfold.records",
    "Preprocessing": "kinfold.images.preprocessing",
    "Proxies": "kinfold.objectives.proxy",
    "ProxySynthesis": "kinfold.objectives.proxy_synthesis",
    "Rates": "kinfold.evaluation.rates",
    "Recipe": "kinfold.recipe",
    "Roc": "kinfold.evaluation.roc",
    "Scores": "kinfold.evaluation.scores",
    "ShapeError": "kinfold.errors",
    "Table": "kinfold.data.table",
    "Threshold": "kinfold.evaluation.threshold",
    "Trained": "kinfold.train",
    "TrainingError": "kinfold.errors",
    "Triplets": "kinfold.records",
    "Verification": "kinfold.evaluation.verification",
    "__version__": "kinfold.version",
    "agreement": "kinfold.evaluation.agreement",
    "assignment_moves": "kinfold.learned_groups",
    "check_table": "kinfold.checks.table",
    "check_training": "kinfold.checks.training",
    "difference_interval": "kinfold.evaluation.scores",
    "embed_table": "kinfold.measure",
    "evaluate": "kinfold.measure",
    "exemplars": "kinfold.evaluation.exemplars",
    "fit": "kinfold.train",
    "fit_hierarchy": "kinfold.fitted_hierarchy",
    "fit_threshold": "kinfold.evaluation.threshold",
    "fold": "kinfold.data.splits",
    "generated_classes": "kinfold.novel_run",
    "hierarchy_from_groups": "kinfold.core.hierarchy",
    "hierarchy_from_parents": "kinfold.core.taxonomy",
    "hierarchy_from_paths": "kinfold.core.taxonomy",
    "hierarchy_of": "kinfold.data.hierarchies",
    "hold_out_classes": "kinfold.data.splits",
    "learned_hierarchy": "kinfold.learned_groups",
    "nearest": "kinfold.evaluation.neighbours",
    "open_image": "kinfold.images.decode",
    "outside_share": "kinfold.evaluation.outside",
    "pairs_from_labels": "kinfold.core.pairs",
    "proxy_loss": "kinfold.objectives.proxy",
    "read_embeddings": "kinfold.embeddings",
    "read_hierarchy": "kinfold.data.taxonomy_file",
    "read_table": "kinfold.data.read",
    "score": "kinfold.evaluation.evaluate",
    "score_hierarchy": "kinfold.evaluation.hierarchy_metrics",
    "score_levels": "kinfold.evaluation.evaluate",
    "score_table": "kinfold.measure",
    "split_classes": "kinfold.data.splits",
    "start_head": "kinfold.head_start",
    "table_from_dataset": "kinfold.data.datasets",
    "threshold_from": "kinfold.evaluation.threshold",
    "trunk": "kinfold.models.trunks",
    "verification": "kinfold.evaluation.verification",
    "with_columns": "kinfold.measure",
    "with_hierarchy": "kinfold.data.hierarchies",
    "without_self": "kinfold.core.pairs",
    "write_glyphs": "kinfold.data.glyphs",
    "write_hierarchy": "kinfold.data.taxonomy_file",
}

_PARTS = ("core", "losses", "objectives")

__all__ = sorted(_HOME)  # noqa: PLE0605  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _PARTS:
        return importlib.import_module(f"kinfold.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'kinfold' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
