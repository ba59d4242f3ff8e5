"""The truth value of an expression in a condition."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.types import (
    BOOL,
    DTYPE,
    FLOAT,
    INT,
    STR,
    TENSOR,
    ListOf,
    OptionalOf,
    plain,
)
from opscope.tensor.jit.scripting.values import (
    Constant,
    Items,
    ModuleValue,
    Value,
    describe,
    type_of,
)

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Condition:
    """A test's outcome, and which variables are not None if it is true, and if it is false."""

    value: bool | GraphValue
    if_true: frozenset[str] = NOTHING
    if_false: frozenset[str] = NOTHING

    def as_value(self) -> Value:
        """The outcome as a value."""
        return self.value if isinstance(self.value, GraphValue) else Constant(self.value)


def truth(frame: Frame, value: Value, at: ast.AST) -> bool | GraphValue:
    """Whether Python takes the value for true."""
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, Items):
        return bool(value.items)
    if isinstance(value, ModuleValue):
        return True
    type_ = type_of(value)
    if type_ is None:
        frame.fail(at, f"whether {describe(value)} is true is unknown", "a comparison")
    type_ = plain(type_)
    made = frame.graph_value(value, at)
    if type_ == BOOL:
        return made
    if type_ in (TENSOR, INT, FLOAT):
        return frame.emit_one("py::bool", [made], BOOL, at)
    if isinstance(type_, ListOf) or type_ == STR:
        length = frame.emit_one("py::len", [made], INT, at)
        return frame.emit_one("py::bool", [length], BOOL, at)
    if type_ == OptionalOf(DTYPE):
        return negate(frame, frame.emit_one("py::is_none", [made], BOOL, at), at)
    frame.fail(at, f"whether {type_} is true is unknown", f"{ast.unparse(at)} is not None")


def negate(frame: Frame, value: bool | GraphValue, at: ast.AST) -> GraphValue | bool:
    """not."""
    if not isinstance(value, GraphValue):
        return not value
    return frame.emit_one("py::not", [value], BOOL, at)
