"""Values of expressions during the translation of a TorchScript program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from opscope.tensor.jit.torchscript.archive import Instance


@dataclass(frozen=True)
class Symbol:
    """A value of the graph: known when it runs."""

    name: str
    type: str


@dataclass(frozen=True)
class Module:
    """An object of the program, with its path from the root."""

    path: str
    instance: Instance


@dataclass(frozen=True)
class Function:
    """A function of the program, or one of PyTorch: "torch.add", "ops.prim.data"."""

    name: str


class OwnList(list[Any]):
    """A list that the program made, in that block of the graph. `kind` is its declared type."""

    def __init__(self, items: Iterable[Any], block: Any) -> None:
        super().__init__(items)
        self.block = block
        self.kind: str | None = None


class Unknown:
    """The result of an operator that has no translation; it is named in the error at the end."""


UNKNOWN = Unknown()


class UnknownError(ValueError):
    """What a graph needs depends on the result of a missing operator."""


Value = Any
"""A Symbol, Module, Function or UNKNOWN; a constant (None, bool, int, float, str); or a list or
tuple of values."""


def is_constant(value: Value) -> bool:
    """Whether it is the same in each run, with all that it contains."""
    if isinstance(value, list | tuple):
        return all(map(is_constant, value))
    return value is None or isinstance(value, bool | int | float | str)


def is_tensor(value: Value) -> bool:
    return isinstance(value, Symbol) and value.type == "Tensor"


def is_same(one: Value, other: Value) -> bool:
    return one is other or (is_constant(one) and type(one) is type(other) and one == other)


def _are_alike(one: Value, other: Value) -> bool:
    return isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)


def leaves(value: Value) -> list[Value]:
    """A value, or the parts of a tuple."""
    return (
        [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [value]
    )


def rebuilt(value: Value, given: Iterator[Value]) -> Value:
    """As `value`, of other leaves."""
    return (
        tuple(rebuilt(part, given) for part in value) if isinstance(value, tuple) else next(given)
    )


def differing(one: Value, other: Value) -> list[tuple[Value, Value]]:
    """Where two values of one name differ: the values, or the parts of tuples."""
    if is_same(one, other) or has_unknown([one, other]):
        return []
    if _are_alike(one, other):
        return [pair for parts in zip(one, other, strict=True) for pair in differing(*parts)]
    return [(one, other)]


def merged(one: Value, other: Value, outputs: Iterator[Value]) -> Value:
    """Either value: where they differ, the next of the outputs."""
    if is_same(one, other):
        return one
    if has_unknown([one, other]):
        return UNKNOWN
    if _are_alike(one, other):
        return tuple(merged(*parts, outputs) for parts in zip(one, other, strict=True))
    return next(outputs)


def has_unknown(values: Any) -> bool:
    """Whether one of the values is the result of a missing operator, or contains one."""
    if isinstance(values, list | tuple):
        return any(map(has_unknown, values))
    return isinstance(values, Unknown)


def type_of(value: Value) -> str:
    """The type of a value in a graph. ValueError for one that has none."""
    if isinstance(value, Symbol):
        return value.type
    if isinstance(value, OwnList) and value.kind is not None and not value:
        return value.kind
    if isinstance(value, list):
        parts = {type_of(each) for each in value}
        if len(parts) > 1:
            raise ValueError(f"a list of {' and '.join(sorted(parts))}")
        return f"List[{parts.pop() if parts else 'int'}]"
    if isinstance(value, tuple):
        return f"Tuple[{', '.join(map(type_of, value))}]"
    if isinstance(value, Unknown):
        raise UnknownError("what follows depends on an operator that is missing")
    names = {bool: "bool", int: "int", float: "float", str: "str", type(None): "None"}
    if type(value) not in names:
        raise ValueError(f"a {type(value).__name__.lower()} where a graph needs a value")
    return names[type(value)]
