"""Optimizers and schedules of their learning rates, under the names of torch.optim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opscope.tensor.optim.optimizer import Optimizer
from opscope.tensor.optim.optimizers import SGD, Adam, AdamW

if TYPE_CHECKING:
    from opscope.tensor.optim import lr_scheduler as lr_scheduler
    from opscope.tensor.optim.adaptive import (
        Adadelta as Adadelta,
    )
    from opscope.tensor.optim.adaptive import Adagrad as Adagrad
    from opscope.tensor.optim.adaptive import Adamax as Adamax
    from opscope.tensor.optim.adaptive import NAdam as NAdam
    from opscope.tensor.optim.adaptive import RAdam as RAdam
    from opscope.tensor.optim.adaptive import RMSprop as RMSprop

_ADAPTIVE = ("Adadelta", "Adagrad", "Adamax", "NAdam", "RAdam", "RMSprop")

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Optimizer",
    "lr_scheduler",
    *_ADAPTIVE,
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "lr_scheduler":
        return import_module(f"{__name__}.lr_scheduler")
    if name in _ADAPTIVE:
        return getattr(import_module(f"{__name__}.adaptive"), name)
    from opscope.tensor.nearest import missing

    raise missing(__name__, name, __all__)
