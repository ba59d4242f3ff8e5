"""Comparison of a scripted function with the Python function that it was made of."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from opscope import tensor as ot
from opscope.tensor import jit


def equal(one: Any, other: Any) -> bool:
    """Whether two results are of the same types and values; NaN equals NaN."""
    if isinstance(one, (tuple, list)):
        return (
            isinstance(other, tuple if isinstance(one, tuple) else list)
            and len(one) == len(other)
            and all(map(equal, one, other))
        )
    if isinstance(one, ot.Tensor):
        return (
            isinstance(other, ot.Tensor)
            and one.shape == other.shape
            and one.dtype is other.dtype
            and ot.allclose(one, other, equal_nan=True)
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return bool(one == other)


def outcome(function: Callable[..., Any], arguments: list[Any]) -> Any:
    """What a call gives, and what its tensors are afterwards; of an exception its type.

    Lists that a call gets are copied, so that it changes its own."""
    given = copy.deepcopy(arguments)
    try:
        result = function(*given)
    except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as e:
        return type(e)
    return [result, *[each for each in given if isinstance(each, ot.Tensor)]]


def check(function: Callable[..., Any], *calls: list[Any]) -> jit.CompiledModel:
    """Assert that scripting the function changes none of these calls; the scripted function."""
    scripted = jit.script(function)
    for arguments in calls:
        wanted, found = outcome(function, arguments), outcome(scripted, arguments)
        assert equal(found, wanted), f"{arguments}: {found}, not {wanted}\n{scripted.graph}"
    return scripted
