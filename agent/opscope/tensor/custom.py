"""Operators written in Python: ``@op("ns::name")``.

Each call is one range of scope FUNCTION, phase forward, like a built-in operator's. Gradients come
from the operators it calls, or from an :class:`opscope.tensor.autograd.Function`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

from opscope.record.ranges import record_function
from opscope.record.scope import RecordScope

F = TypeVar("F", bound=Callable[..., Any])

_NAME = re.compile(r"[a-z][a-z0-9_]*::[a-z][a-z0-9_]*", re.IGNORECASE)


def op(name: str) -> Callable[[F], F]:
    """Make a function the operator ``name``: each call opens one range of that name.

    >>> @op("mine::double")
    ... def double(x):
    ...     return x + x

    Callbacks that ask for inputs see the positional arguments. ValueError for a name that is not
    ``namespace::name``.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"op(): an operator is named 'namespace::name', not {name!r}")

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with record_function(name, *args, scope=RecordScope.FUNCTION):
                return function(*args, **kwargs)

        return cast(F, run)

    return decorate
