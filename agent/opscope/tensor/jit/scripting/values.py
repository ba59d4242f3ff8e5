"""Values during scripting: a value of the graph, or a Python object that is already known.

Numbers, texts and None that are known are computed with at once. Modules, functions and other
objects never become values of a graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from opscope._tensor import Tensor, dtype
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.types import (
    BOOL,
    DTYPE,
    FLOAT,
    INT,
    NONE,
    STR,
    TENSOR,
    TupleOf,
    Type,
)


@dataclass(frozen=True)
class Constant:
    """A number, a text, None or a dtype that is known."""

    value: int | float | bool | str | dtype | None

    def equals(self, other: object) -> bool:
        """The same constant: True is not 1, and -0.0 is not 0.0."""
        return (
            isinstance(other, Constant)
            and type(self.value) is type(other.value)
            and repr(self.value) == repr(other.value)
        )


@dataclass(frozen=True, eq=False)
class Items:
    """A tuple, or a list that must not change; the number of its items is known."""

    items: tuple[Value, ...]
    names: tuple[str, ...] = ()
    """Of the items, if they have any."""
    is_list: bool = False

    def is_like(self, other: Items) -> bool:
        """Whether the other is of the same kind and length."""
        return self.is_list == other.is_list and len(self.items) == len(other.items)


@dataclass(frozen=True, eq=False)
class Object:
    """A Python object that is no value: a function, a class, a module of Python."""

    object: Any


@dataclass(frozen=True, eq=False)
class AttributeTensor:
    """A tensor of the model; `name` is its attribute's."""

    tensor: Tensor
    name: str


@dataclass(frozen=True, eq=False)
class ModuleValue:
    """A module of the model, and its path from the root."""

    module: Any
    path: str


@dataclass(frozen=True, eq=False)
class FunctionValue:
    """A Python function, with what it is bound to if it is a method."""

    function: Callable[..., Any]
    bound_to: Value | None = None


@dataclass(frozen=True, eq=False)
class Method:
    """A method of a tensor, list or text."""

    owner: Value
    name: str


@dataclass(frozen=True, eq=False)
class SliceValue:
    """slice(start, stop, step)."""

    start: Value
    stop: Value
    step: Value


@dataclass(frozen=True, eq=False)
class SuperValue:
    """super() in a method of `owner`, bound to `bound_to`."""

    owner: type
    bound_to: Value


@dataclass(frozen=True, eq=False)
class Loopable:
    """What a for loop goes over, other than a tuple: how many rounds, and the item of a round.

    Both make nodes when they are called, in the block of that moment.
    """

    count: Callable[[], Value]
    item: Callable[[GraphValue], Value]


Value: TypeAlias = (
    GraphValue
    | Constant
    | Items
    | Object
    | AttributeTensor
    | ModuleValue
    | FunctionValue
    | Method
    | SliceValue
    | SuperValue
    | Loopable
)

_TYPES = {bool: BOOL, int: INT, float: FLOAT, str: STR, type(None): NONE, dtype: DTYPE}


def type_of(value: Value) -> Type | None:
    """The type that the value has in a graph; None if it can never be in one."""
    if isinstance(value, GraphValue):
        return value.type
    if isinstance(value, Constant):
        return _TYPES[type(value.value)]
    if isinstance(value, AttributeTensor):
        return TENSOR
    if isinstance(value, Items):
        found = [part for part in map(type_of, value.items) if part is not None]
        return TupleOf(tuple(found)) if len(found) == len(value.items) else None
    return None


def describe(value: Value) -> str:
    """What it is, for an error."""
    found = type_of(value)
    if found is not None:
        return str(found)
    if isinstance(value, ModuleValue):
        return f"the module {type(value.module).__name__}"
    if isinstance(value, FunctionValue):
        return f"the function {value.function.__qualname__}"
    if isinstance(value, Method):
        return f"the method {value.name}"
    if isinstance(value, Object):
        return f"the Python object {getattr(value.object, '__name__', value.object)!r}"
    return {Items: "a tuple", SliceValue: "a slice", SuperValue: "super()"}.get(
        type(value), "something to loop over"
    )
