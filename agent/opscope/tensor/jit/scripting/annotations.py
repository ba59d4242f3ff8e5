"""Read types from the annotations of signatures and variables."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.types import Type, from_annotation

_REMEDY = "int, float, bool, str, Tensor, or list, tuple and Optional of these"


class _Names(dict[str, Any]):
    """The names that an annotation may use: those of the function."""

    def __init__(self, frame: Frame, at: ast.AST) -> None:
        super().__init__()
        self._frame, self._at = frame, at

    def __missing__(self, name: str) -> Any:
        return self._frame.python_object(name, self._at)


def annotated_type(frame: Frame, node: ast.expr) -> Type:
    """The type that an annotation names. Raises ScriptError for one that no graph has."""
    text = node.value if isinstance(node, ast.Constant) else None
    parsed = node
    if isinstance(text, str):
        try:
            parsed = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            frame.fail(node, "this annotation is no type", _REMEDY)
    code = compile(ast.Expression(_plain(parsed)), frame.source.file, "eval")
    try:
        found = eval(code, {"__builtins__": vars(builtins)}, _Names(frame, node))
    except (TypeError, AttributeError):
        frame.fail(node, "this annotation is no type", _REMEDY)
    type_ = from_annotation(found)
    if type_ is None:
        frame.fail(node, f"a graph has no type {ast.unparse(node)}", _REMEDY)
    return type_


def _plain(node: ast.expr) -> ast.expr:
    """The expression, with texts within it read as the types that they name."""

    class Reader(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.expr:
            if isinstance(node.value, str):
                return ast.parse(node.value, mode="eval").body
            return node

    found: ast.expr = Reader().visit(node)
    return ast.fix_missing_locations(found)
