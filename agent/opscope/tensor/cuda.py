"""torch.cuda, for programs that ask whether there is one: there is none here."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """False: tensors are on the cpu."""
    return False


def device_count() -> int:
    """0."""
    return 0


def is_initialized() -> bool:
    """False."""
    return False


def manual_seed(seed: int) -> None:
    """Does nothing: there is no device to seed, as in PyTorch without one."""


def manual_seed_all(seed: int) -> None:
    """Does nothing: there is no device to seed, as in PyTorch without one."""


def empty_cache() -> None:
    """Does nothing, as in PyTorch without a device."""


def __getattr__(name: str) -> Any:
    from opscope.tensor.nearest import missing

    raise missing(__name__, name, globals())
