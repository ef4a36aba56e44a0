"""The batches that a recipe makes of a table's training images: from the images, or from kept outputs of a frozen part."""

from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from kinfold.data.datasets import images_of
from kinfold.data.loader import ImageLoader
from kinfold.data.samplers import BatchSampler, HierarchicalSampler, MPerClassSampler, RandomBatchSampler
from kinfold.data.table import Table
from kinfold.data.transforms import Transform, decoding_size, train_transform
from kinfold.errors import ConfigError, did_you_mean
from kinfold.models.embedder import Embedder
from kinfold.models.feature_cache import FeatureCache
from kinfold.models.frozen import Front
from kinfold.recipe import BatchSettings, Recipe
from kinfold.stored import Source, StoredBatches, evaluation_source

TrainingBatches = ImageLoader | StoredBatches
"""Batches by epoch, which know what images were left out, and can be closed."""


def trains_on_values(embedder: Embedder, recipe: Recipe) -> bool:
    """Return whether training reads kept values: part of the model is frozen, and there are so many views that they can be kept."""
    can_be_kept = not recipe.batches.augment or recipe.cache.views is not None
    return embedder.frozen is not None and recipe.cache.use and can_be_kept


def training_batches(train: Table, embedder: Embedder, recipe: Recipe, *, cache: FeatureCache | None = None) -> TrainingBatches:
    """Return the training batches; they are the same, and of the same views, whether values are kept or not.

    Args:
        train: the training images.
        embedder: decides size and normalisation, and what is frozen.
        recipe: how batches are drawn and augmented.
        cache: where to keep outputs of the frozen part; `None`: nowhere.

    Raises:
        ConfigError: the sampler cannot make such batches of these classes, or `batches.level` is no level of the table.
    """
    batches = recipe.batches
    source = _source(train, embedder, recipe)
    sampler = _sampler(train, batches, recipe.seed)
    if cache is not None and trains_on_values(embedder, recipe):
        assert embedder.frozen is not None
        return StoredBatches(source, sampler, Front(embedder, embedder.frozen), cache)
    return ImageLoader(
        source.images,
        source.label,
        source.item,
        transform=source.transform,
        sampler=sampler,
        workers=batches.workers,
        seed=0 if source.views else recipe.seed,  # a given number of views is drawn once for all runs
        views=source.views or None,
        on_broken=batches.on_broken,
    )


def _source(train: Table, embedder: Embedder, recipe: Recipe) -> Source:
    batches, preprocessing = recipe.batches, embedder.preprocessing
    how: dict[str, Any] = {"workers": batches.workers, "on_broken": batches.on_broken}
    if not batches.augment:
        return evaluation_source(train, preprocessing, **how)
    return Source(
        images_of(train, draft_size=decoding_size(preprocessing.size, crop_scale=batches.crop_scale)),
        torch.as_tensor(train.class_index),
        torch.as_tensor(train.item),
        transform=_transform(embedder, batches),
        view={
            "preprocessing": preprocessing.to_dict(),
            "crop_scale": list(batches.crop_scale),
            "flip": batches.flip,
            "color_jitter": batches.color_jitter,
            "versions": [version("torchvision"), version("Pillow")],
        },
        views=recipe.cache.views or 0,
        **how,
    )


def _transform(embedder: Embedder, batches: BatchSettings) -> Transform:
    return train_transform(
        embedder.preprocessing, crop_scale=batches.crop_scale, flip=batches.flip, color_jitter=batches.color_jitter
    )


def _sampler(train: Table, batches: BatchSettings, seed: int) -> BatchSampler:
    label = train.class_index
    how: dict[str, Any] = {"batch_size": batches.batch_size, "seed": seed}
    if batches.sampler == "random":
        return RandomBatchSampler(len(train), **how)
    if batches.sampler == "hierarchical":
        group, classes_per_group = _groups(train, batches.level), batches.classes_per_group
        return HierarchicalSampler(label, group, m=batches.images_per_class, classes_per_group=classes_per_group, **how)
    return MPerClassSampler(label, m=batches.images_per_class, **how)


def _groups(train: Table, level: str | None) -> np.ndarray:
    """Return the group of each image on the level of `hierarchical` batches."""
    asked = "`batches.sampler` = 'hierarchical'"
    if not train.levels:
        raise ConfigError(
            f"{asked} needs groups of classes, but the table has no level: add a column such as `label.family`, or name a file as "
            "`data.taxonomy`."
        )
    if level is None:
        raise ConfigError(f"{asked} needs `batches.level`, one of: {', '.join(train.levels)}.")
    if level not in train.levels:
        raise ConfigError(f"`batches.level` = {level!r} is no level of the table: {did_you_mean(level, train.levels)}")
    return train.level_codes(level)
