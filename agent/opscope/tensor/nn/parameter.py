"""Parameter and Buffer, where torch.nn.parameter has them."""

from __future__ import annotations

from opscope.tensor.nn.module import Buffer, Parameter

__all__ = ["Buffer", "Parameter"]
