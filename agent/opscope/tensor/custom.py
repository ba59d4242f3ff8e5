"""Operators written in Python: `@op("ns::name")`.

Each call is one range of scope FUNCTION, phase forward, like a built-in operator's. Gradients come
from the operators that it calls, or from an `opscope.tensor.autograd.Function`; their ranges have
phase backward.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from opscope._native import lib
from opscope.record.ranges import record_function
from opscope.record.scope import RecordScope, phase_number

F = TypeVar("F", bound=Callable[..., Any])

_has_callbacks_of = lib.opscope_has_callbacks_of
_FUNCTION = int(RecordScope.FUNCTION)

_NAME = re.compile(r"[a-z][a-z0-9_]*::[a-z][a-z0-9_]*", re.IGNORECASE)


def op(name: str, *, phase: str = "forward") -> Callable[[F], F]:
    """Make a function the operator `name`: each call opens one range of that name.

    >>> @op("mine::double")
    ... def double(x):
    ...     return x + x

    Callbacks that ask for inputs get the positional arguments; those that ask for outputs, the
    result. `phase` as for `opscope.record_function`. Raises ValueError for a name that is not
    `namespace::name` or that belongs to the core's operators or backward nodes, and for an unknown
    phase.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"op(): an operator is named 'namespace::name', not {name!r}")

    if name.startswith("core::"):
        raise ValueError(f"op(): {name}: the namespace core is reserved; choose another")
    if name.endswith("Backward"):
        raise ValueError(
            f"op(): {name}: a name that ends with Backward is reserved for nodes of backward; "
            "choose another"
        )
    phase_number(phase)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not _has_callbacks_of(_FUNCTION):
                return function(*args, **kwargs)
            with record_function(name, *args, scope=RecordScope.FUNCTION, phase=phase) as around:
                result = function(*args, **kwargs)
                around._returns(result)
                return result

        return cast(F, run)

    return decorate
