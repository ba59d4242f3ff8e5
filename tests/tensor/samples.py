"""Sample calls of the core's operators, from the table, for any side of a comparison.

A sample is a line of Python: the arguments of a call, with t(...), p(...), c(...), i(...),
index(...) and b(...) for tensors (see _Arrays).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opscope import tensor as ot
from opscope._tensor import functions

Array = Any  # an ndarray of any dtype


@dataclass(frozen=True)
class Sample:
    """One sample call; its tensors are NumPy arrays."""

    operator: str
    line: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def arrays(self) -> list[Array]:
        """Every array among the arguments, in order."""
        found: list[Array] = []
        self.mapped(found.append)
        return found

    def mapped(self, convert: Callable[[Array], Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with each array replaced by `convert(array)`."""

        def walk(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return convert(value)
            if isinstance(value, list | tuple):
                return type(value)(walk(item) for item in value)
            return value

        args = tuple(walk(arg) for arg in self.args)
        return args, {name: walk(value) for name, value in self.kwargs.items()}


class Constant(np.ndarray):
    """Floats for which an operator has no gradient."""


class _Arrays:
    """Creates a sample's arrays, the same in every run."""

    def __init__(self, seed: int, dtype: Any, positive: bool) -> None:
        self._random = np.random.default_rng(seed)
        self._dtype = dtype
        self._positive = positive

    def t(self, *shape: int) -> Array:
        """Any numbers, or positive ones if the test asks for these."""
        if self._positive:
            return self.p(*shape)
        return np.asarray(self._random.normal(size=shape), self._dtype)

    def p(self, *shape: int) -> Array:
        """Of numbers within [0.5, 1.5]."""
        return np.asarray(self._random.uniform(0.5, 1.5, shape), self._dtype)

    def c(self, *shape: int) -> Array:
        """As p, but constant: not for gradients."""
        return self.p(*shape).view(Constant)

    def i(self, *shape: int) -> Array:
        """Of 0 and 1."""
        return self.index(2, *shape)

    def index(self, size: int, *shape: int) -> Array:
        """Of indices into a dimension of that size."""
        return np.asarray(self._random.integers(0, size, shape), np.int64)

    def b(self, *shape: int) -> Array:
        """Of bools."""
        return np.asarray(self._random.random(shape) < 0.5)


def _arguments(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


def samples_of(name: str, *, positive: bool = False, dtype: Any = np.float64) -> list[Sample]:
    """The samples of one operator. `positive`: away from 0, for logarithms and for kinks."""
    lines = [line.strip() for line in ot.operators[name].samples.splitlines() if line.strip()]
    samples = []
    for seed, line in enumerate(lines):
        make = _Arrays(seed, dtype, positive)
        names: dict[str, Any] = {each.name: each for each in DTYPES}
        names |= {
            "t": make.t,
            "p": make.p,
            "c": make.c,
            "i": make.i,
            "index": make.index,
            "b": make.b,
            "arguments": _arguments,
        }
        args, kwargs = eval(f"arguments({line})", names)
        samples.append(Sample(name, line, args, kwargs))
    return samples


DTYPES = (ot.float32, ot.float64, ot.int32, ot.int64, ot.uint8, ot.bool, ot.float16, ot.bfloat16)


def base_operators() -> list[str]:
    """The operators of the table that are not the in-place form of another."""
    return [name for name in ot.operators if not name.endswith("_")]


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """Call the operator of that full name."""
    return functions[name.partition("::")[2]](*args, **kwargs)


def outputs_of(result: Any) -> tuple[Any, ...]:
    """The outputs of a call as a tuple, also of one."""
    return tuple(result) if isinstance(result, tuple | list) else (result,)
