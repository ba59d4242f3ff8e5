"""Script `return`: the result, and the flag that the function has returned."""

from __future__ import annotations

import ast

from opscope.tensor.jit.scripting.annotations import annotated_type
from opscope.tensor.jit.scripting.convert import need
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.sequence import result_type, set_flag
from opscope.tensor.jit.scripting.types import ANY, join
from opscope.tensor.jit.scripting.values import Constant, Value, type_of
from opscope.tensor.jit.scripting.variables import RESULT, RETURNED, Bound


@scripts(ast.Return)
def _return(frame: Frame, node: ast.Return) -> None:
    value = Constant(None) if node.value is None else expression(frame, node.value)
    give_back(frame, value, node)


def give_back(frame: Frame, value: Value, at: ast.AST) -> None:
    """The function returns the value."""
    annotation = frame.source.tree.returns
    declared = ANY if annotation is None else annotated_type(frame, annotation)
    if declared != ANY:
        value = frame.receive(need(frame, value, declared, at, "the result"), at)
    found = type_of(value)
    if found is None:
        value = frame.graph_value(value, at)
        found = value.type
    if declared != ANY and join(found, declared) == declared:
        found = declared
    line = frame.source.line(at)
    if frame.results:
        before = result_type(frame)
        if join(before, found) is None:
            frame.fail(
                at,
                f"the function returns {found} here, and {before} at line {frame.results[0][1]}",
                "results of one type, or a tuple",
            )
    frame.results.append((found, line))
    frame.variables[RESULT] = Bound(value, line)
    set_flag(frame, RETURNED, True)
