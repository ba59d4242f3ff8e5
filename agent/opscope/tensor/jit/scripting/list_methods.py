"""Script methods of lists and strings."""

from __future__ import annotations

import ast

from opscope.tensor.jit.scripting import prelude
from opscope.tensor.jit.scripting.convert import need
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.functions import call_function
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.listing import to_list
from opscope.tensor.jit.scripting.types import INT, ListOf, plain
from opscope.tensor.jit.scripting.values import (
    Constant,
    FunctionValue,
    Items,
    Method,
    Value,
    describe,
    type_of,
)

# Each with the number of its arguments.
_COUNTS = {
    "append": (1, 1),
    "clear": (0, 0),
    "copy": (0, 0),
    "count": (1, 1),
    "extend": (1, 1),
    "index": (1, 1),
    "insert": (2, 2),
    "pop": (0, 1),
    "reverse": (0, 0),
}


def call_method(
    frame: Frame, method: Method, arguments: list[Value], keywords: dict[str, Value], at: ast.AST
) -> Value:
    """A method of a list or a text."""
    owner, name = method.owner, method.name
    type_ = type_of(owner)
    type_ = type_ and plain(type_)
    if isinstance(owner, Constant):
        return _of_text(frame, owner, name, arguments, at)
    if not isinstance(type_, ListOf) and not isinstance(owner, Items):
        frame.fail(at, f"the method {name} of {describe(owner)} is not in graphs", "+ and str(...)")
    if keywords or name not in _COUNTS:
        frame.fail(at, f"list.{name} is not in graphs as it is called here", "a loop")
    least, most = _COUNTS[name]
    if not least <= len(arguments) <= most:
        count = str(most) if least == most else f"{least} or {most}"
        frame.fail(
            at,
            f"list.{name} takes {count} arguments, not {len(arguments)}",
            f"a call with {count}",
        )
    if name in ("count", "index"):
        function = prelude.times if name == "count" else prelude.place_of
        listed = to_list(frame, owner, at)
        return call_function(frame, FunctionValue(function), [listed, *arguments], {}, at)
    if isinstance(owner, Items):
        frame.fail(
            at,
            "a list that is no variable of the function cannot be changed, because it is a "
            "constant of the graph",
            "list(...) of it, in a variable",
        )
    listed = frame.graph_value(owner, at)
    assert isinstance(type_, ListOf)
    return _change(frame, listed, type_, name, arguments, at)


def _change(
    frame: Frame,
    listed: GraphValue,
    type_: ListOf,
    name: str,
    arguments: list[Value],
    at: ast.AST,
) -> Value:
    if name == "copy":
        return frame.emit_one("py::copy", [listed], type_, at)
    if name == "pop":
        place = arguments[0] if arguments else Constant(-1)
        inputs = [listed, need(frame, place, INT, at, "the index of pop")]
        return frame.receive(frame.emit_one("py::pop", inputs, type_.part, at), at)
    inputs = [listed]
    if name == "insert":
        inputs.append(need(frame, arguments[0], INT, at, "the index of insert"))
    if name in ("append", "insert"):
        inputs.append(need(frame, arguments[-1], type_.part, at, "an item of the list"))
    if name == "extend":
        more = arguments[0] if isinstance(arguments[0], Items) else to_list(frame, arguments[0], at)
        inputs.append(need(frame, more, type_, at, "what a list is extended by"))
    frame.emit(f"py::{name}", inputs, [], at)
    return Constant(None)


def _of_text(
    frame: Frame, owner: Constant, name: str, arguments: list[Value], at: ast.AST
) -> Value:
    """A method of a known text with known arguments."""
    known = [each.value for each in arguments if isinstance(each, Constant)]
    method = getattr(owner.value, name, None)
    if method is None or len(known) < len(arguments):
        frame.fail(at, f"the method {name} of str is not in graphs", "+ and str(...)")
    result = method(*known)
    if not isinstance(result, (bool, int, str)):
        frame.fail(at, f"the method {name} of str is not in graphs", "+ and str(...)")
    return Constant(result)
