"""The table of batch samplers for training, by the name that a configuration uses."""

from kinfold.data.batch_sampler import BatchSampler
from kinfold.data.hierarchical_sampler import HierarchicalSampler
from kinfold.data.m_per_class import MPerClassSampler
from kinfold.data.random_batches import RandomBatchSampler, SequentialBatchSampler

SAMPLERS: dict[str, type[BatchSampler]] = {
    "hierarchical": HierarchicalSampler,
    "m_per_class": MPerClassSampler,
    "random": RandomBatchSampler,
}

__all__ = ["SAMPLERS", "BatchSampler", "HierarchicalSampler", "MPerClassSampler", "RandomBatchSampler", "SequentialBatchSampler"]
