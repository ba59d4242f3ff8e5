"""Convert values to an annotated type, where Python's annotations allow it."""

from __future__ import annotations

import ast

from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    ListOf,
    OptionalOf,
    TupleOf,
    Type,
    Unknown,
    join,
    plain,
)
from opscope.tensor.jit.scripting.values import Constant, Items, Value, describe, type_of


def convert(frame: Frame, value: Value, wanted: Type, at: ast.AST) -> GraphValue | None:
    """The value as one of that type; None if it is none."""
    wanted = plain(wanted)
    if isinstance(value, Items):
        return _convert_items(frame, value, wanted, at)
    found = type_of(value)
    if found is None:
        return None
    found = plain(found)
    if found == wanted or wanted == ANY or isinstance(wanted, Unknown):
        join(found, wanted)
        return frame.graph_value(value, at)
    if isinstance(wanted, OptionalOf):
        if found == NONE or (isinstance(found, OptionalOf) and join(found, wanted) == wanted):
            return frame.graph_value(value, at)
        return convert(frame, value, wanted.part, at)
    if wanted == FLOAT and found in (BOOL, INT):
        if isinstance(value, Constant):
            return frame.constant(float(value.value), FLOAT, at)  # type: ignore[arg-type]
        return frame.emit_one("py::float", [frame.graph_value(value, at)], FLOAT, at)
    if wanted == INT and found == BOOL:
        if isinstance(value, Constant):
            return frame.constant(int(value.value), INT, at)  # type: ignore[arg-type]
        return frame.emit_one("py::int", [frame.graph_value(value, at)], INT, at)
    if isinstance(wanted, ListOf) and isinstance(found, ListOf):
        return frame.graph_value(value, at) if join(found, wanted) == wanted else None
    if isinstance(wanted, TupleOf) and isinstance(found, ListOf):
        listed = frame.graph_value(value, at)
        count = len(wanted.parts)
        parts = frame.emit("prim::ListUnpack", [listed], [found.part] * count, at)
        return convert(frame, Items(tuple(parts)), wanted, at)
    return None


def _convert_items(frame: Frame, value: Items, wanted: Type, at: ast.AST) -> GraphValue | None:
    if wanted == ANY:
        return frame.graph_value(value, at)
    if isinstance(wanted, OptionalOf):
        return convert(frame, value, wanted.part, at)
    if isinstance(wanted, ListOf):
        parts = [convert(frame, item, wanted.part, at) for item in value.items]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            return None
        return frame.emit_one("prim::ListConstruct", found, wanted, at)
    if isinstance(wanted, TupleOf) and len(wanted.parts) == len(value.items):
        pairs = zip(value.items, wanted.parts, strict=True)
        parts = [convert(frame, item, part, at) for item, part in pairs]
        found = [part for part in parts if part is not None]
        if len(found) == len(parts):
            return frame.emit_one("prim::TupleConstruct", found, wanted, at)
    return None


def need(frame: Frame, value: Value, wanted: Type, at: ast.AST, what: str) -> GraphValue:
    """The value as one of that type; `what` it is, for the error if it is none."""
    found = convert(frame, value, wanted, at)
    if found is None:
        have = describe(value)
        remedy = f"a value of type {wanted}"
        if have.startswith("Optional["):
            name = at.id if isinstance(at, ast.Name) else "x"
            remedy = f"a test before it that excludes None: assert {name} is not None"
        frame.fail(at, f"{what} is to be {wanted}, not {have}", remedy)
    return found
