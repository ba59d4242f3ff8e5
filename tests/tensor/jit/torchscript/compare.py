"""PyTorch's models beside the same ones loaded here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope import tensor as ot
from opscope.tensor import jit

torch: Any = pytest.importorskip("torch")


def compiled(model: Any, how: str, *examples: Any) -> Any:
    with torch.no_grad():
        return torch.jit.script(model) if how == "script" else torch.jit.trace(model, examples)


def loaded(model: Any, path: Path) -> jit.CompiledModel:
    torch.jit.save(model, str(path))
    return jit.load(path)


def ours(*values: Any) -> list[Any]:
    return [
        ot.from_numpy(each.numpy().copy()) if isinstance(each, torch.Tensor) else each
        for each in values
    ]


def plain(result: Any) -> Any:
    if isinstance(result, list | tuple):
        return [plain(each) for each in result]
    return np.asarray(result.detach()) if hasattr(result, "detach") else result


def assert_close(found: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
