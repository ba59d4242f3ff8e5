"""The scopes and phases of ranges, numbered as in opscope/record.h (the scopes also as in PyTorch's
at::RecordScope)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class RecordScope(IntEnum):
    """The kind of work that a range does."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


def scope_bits(scopes: Iterable[RecordScope | int]) -> int:
    """One bit for each scope; 0, which means all, for none. ValueError for an unknown scope."""
    bits = 0
    for scope in scopes:
        bits |= 1 << RecordScope(scope)
    return bits


PHASES = ("other", "forward", "backward", "optimizer", "data", "comm")

_PHASE_NUMBERS = {name: number for number, name in enumerate(PHASES)}


def phase_number(name: str) -> int:
    """The number of a phase. ValueError for an unknown phase."""
    try:
        return _PHASE_NUMBERS[name]
    except KeyError:
        raise ValueError(f"a phase must be one of {', '.join(PHASES)}, not {name!r}") from None
