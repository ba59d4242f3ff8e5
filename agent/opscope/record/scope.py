"""The scopes of ranges, numbered as in opscope/record.h (and in PyTorch's at::RecordScope)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class RecordScope(IntEnum):
    """What kind of work a range is."""

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
    """A bit for each scope; 0, which means all, for none. ValueError for an unknown scope."""
    bits = 0
    for scope in scopes:
        bits |= 1 << RecordScope(scope)
    return bits
