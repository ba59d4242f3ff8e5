"""torch.utils: `data`, which is opscope.tensor.data."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opscope.tensor.utils import data as data


def __getattr__(name: str) -> object:
    if name == "data":
        from importlib import import_module

        return import_module(f"{__name__}.data")
    from opscope.tensor.nearest import missing

    raise missing(__name__, name, ["data"])
