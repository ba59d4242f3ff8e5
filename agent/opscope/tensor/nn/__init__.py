"""Modules for small networks: names, initialization, state_dict and results are PyTorch's.

The core's operators compute; each file here has modules of one kind.
"""

from __future__ import annotations

from opscope.tensor.nn.activation import (
    GELU,
    Dropout,
    Flatten,
    Identity,
    LogSoftmax,
    ReLU,
    Sigmoid,
    Softmax,
    Tanh,
)
from opscope.tensor.nn.container import ModuleList, Sequential
from opscope.tensor.nn.convolution import AdaptiveAvgPool2d, AvgPool2d, Conv2d, MaxPool2d
from opscope.tensor.nn.linear import Embedding, Linear
from opscope.tensor.nn.loss import CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from opscope.tensor.nn.module import LoadedKeys, Module, Parameter
from opscope.tensor.nn.normalization import BatchNorm1d, BatchNorm2d, LayerNorm
from opscope.tensor.nn.transformer import MultiheadAttention, TransformerEncoderLayer

__all__ = [
    "GELU",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "Linear",
    "LoadedKeys",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "TransformerEncoderLayer",
]
