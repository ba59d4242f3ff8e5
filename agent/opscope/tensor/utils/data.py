"""torch.utils.data: the names of opscope.tensor.data."""

from __future__ import annotations

from opscope.tensor.data import *  # noqa: F403
from opscope.tensor.data import __all__ as __all__
