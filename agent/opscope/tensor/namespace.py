"""The methods by which the array API standard finds its functions from a tensor."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor


def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The functions of the array API standard. ValueError for a version that is not there."""
    from opscope.tensor import array_api

    if api_version is not None and api_version not in ("2022.12", "2023.12", "2024.12"):
        raise ValueError(f"__array_namespace__(): no version {api_version!r}, but 2024.12")
    return array_api


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor itself. RuntimeError for any other device than the cpu."""
    from opscope.tensor.places import check

    check(device, "to_device")
    return self
