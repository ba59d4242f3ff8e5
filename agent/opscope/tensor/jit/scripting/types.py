"""The types of values in graphs, how two of them become one, and how annotations name them."""

from __future__ import annotations

import types as python_types
import typing
from collections import abc
from dataclasses import dataclass
from typing import Any

from opscope._tensor import Tensor, dtype
from opscope.record.tasks import Future


class Type:
    """A type of a graph's value; `str` is its text there."""


@dataclass(frozen=True)
class Simple(Type):
    """A type without parts."""

    name: str

    def __str__(self) -> str:
        return self.name


TENSOR, INT, FLOAT, BOOL, STR, NONE, DTYPE = map(
    Simple, ("Tensor", "int", "float", "bool", "str", "None", "Dtype")
)
NUMBERS = (BOOL, INT, FLOAT)
ANY = Simple("Any")
"""Of parameters only: the type is that of the argument."""


@dataclass(frozen=True)
class ListOf(Type):
    """A list of items of one type."""

    part: Type

    def __str__(self) -> str:
        return f"List[{self.part}]"


@dataclass(frozen=True)
class OptionalOf(Type):
    """None or a value of a type."""

    part: Type

    def __str__(self) -> str:
        return f"Optional[{self.part}]"


@dataclass(frozen=True)
class FutureOf(Type):
    """What a task gives."""

    part: Type

    def __str__(self) -> str:
        return f"Future[{self.part}]"


@dataclass(frozen=True)
class TupleOf(Type):
    """A tuple, with the type of each item."""

    parts: tuple[Type, ...]

    def __str__(self) -> str:
        return f"Tuple[{', '.join(map(str, self.parts))}]"


@dataclass(eq=False)
class Unknown(Type):
    """What an empty list contains, until its first use tells."""

    found: Type | None = None

    def __str__(self) -> str:
        return str(self.found or TENSOR)


def plain(type_: Type) -> Type:
    """The type, with each Unknown replaced by the type found since."""
    if isinstance(type_, Unknown):
        return plain(type_.found) if type_.found else type_
    if isinstance(type_, ListOf):
        return ListOf(plain(type_.part))
    if isinstance(type_, OptionalOf):
        return OptionalOf(plain(type_.part))
    if isinstance(type_, FutureOf):
        return FutureOf(plain(type_.part))
    if isinstance(type_, TupleOf):
        return TupleOf(tuple(map(plain, type_.parts)))
    return type_


def optional(part: Type) -> Type:
    """None or that type."""
    return part if part == NONE or isinstance(part, OptionalOf) else OptionalOf(part)


def join(one: Type, other: Type) -> Type | None:
    """The type of a value that is of either type; None if there is none."""
    one, other = plain(one), plain(other)
    if one == other:
        return one
    for some, rest in ((one, other), (other, one)):
        if some == NONE:
            return optional(rest)
        if isinstance(some, Unknown):
            some.found = rest
            return rest
        if isinstance(some, OptionalOf):
            inner = rest.part if isinstance(rest, OptionalOf) else rest
            part = join(some.part, inner)
            return part and optional(part)
        if isinstance(some, ListOf) and isinstance(rest, TupleOf):
            same = all(join(some.part, part) == some.part for part in rest.parts)
            return some if same else None
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        part = join(one.part, other.part)
        # Lists are references, so the items of one cannot be given another type.
        same = part is not None and part in (plain(one.part), plain(other.part))
        return ListOf(part) if part is not None and same else None
    if isinstance(one, TupleOf) and isinstance(other, TupleOf):
        if len(one.parts) != len(other.parts):
            return None
        parts = [join(*pair) for pair in zip(one.parts, other.parts, strict=True)]
        found = [part for part in parts if part is not None]
        return TupleOf(tuple(found)) if len(found) == len(parts) else None
    return None


_SIMPLE: dict[Any, Type] = {
    Tensor: TENSOR,
    int: INT,
    float: FLOAT,
    bool: BOOL,
    str: STR,
    None: NONE,
    type(None): NONE,
    dtype: DTYPE,
    Any: ANY,
    object: ANY,
    # Bare containers, as annotations of local variables may be.
    list: ListOf(TENSOR),
    typing.List: ListOf(TENSOR),  # noqa: UP006 - what people write
}
_LISTS = (list, abc.Sequence, abc.Iterable, abc.Collection)


def from_annotation(annotation: Any) -> Type | None:
    """The type that an annotation, once evaluated, names; None for one that no graph has."""
    try:
        if annotation in _SIMPLE:
            return _SIMPLE[annotation]
    except TypeError:
        return None
    if isinstance(annotation, type) and issubclass(annotation, Tensor):
        return TENSOR
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Final or origin is typing.Annotated:
        return from_annotation(arguments[0])
    parts = [from_annotation(each) for each in arguments if each is not ...]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    if origin is Future:
        return FutureOf(found[0])
    if origin in _LISTS or (origin is tuple and ... in arguments):
        return ANY if found[0] == ANY else ListOf(found[0])
    if origin is tuple:
        return ANY if ANY in found else TupleOf(tuple(found))
    if origin is typing.Union or origin is python_types.UnionType:
        others = [part for part in found if part != NONE]
        if len(others) == 1 and len(found) == 2:
            return ANY if others[0] == ANY else optional(others[0])
    return None
