"""Datasets, and the DataLoader that makes batches of them, in this process or in workers.

Names and semantics are PyTorch's (`torch.utils.data`). Read in this order: dataset.py, sampler.py,
collate.py, loader.py; then the code for workers: worker.py, transport.py, pool.py.
"""

from __future__ import annotations

from opscope.tensor.data.collate import default_collate, default_convert
from opscope.tensor.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from opscope.tensor.data.loader import DataLoader
from opscope.tensor.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from opscope.tensor.data.worker import WorkerInfo, get_worker_info

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
