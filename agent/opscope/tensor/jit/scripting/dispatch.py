"""The table of functions that script Python's constructs: files register and find them here."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeVar

from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.values import Items, Value

Handler = TypeVar("Handler", bound=Callable[..., Any])
EXPRESSIONS: dict[type[ast.AST], Callable[[Frame, Any], Value]] = {}
STATEMENTS: dict[type[ast.AST], Callable[[Frame, Any], None]] = {}

_NAMES = {
    ast.Lambda: ("a lambda", "a function defined with def"),
    ast.Dict: ("a dict", "a list, a tuple or attributes of the module"),
    ast.DictComp: ("a dict", "a list, a tuple or attributes of the module"),
    ast.Set: ("a set", "a list or a tuple"),
    ast.SetComp: ("a set", "a list or a tuple"),
    ast.NamedExpr: ("an assignment in an expression", "an assignment before this statement"),
    ast.Await: ("await", "a function without async"),
    ast.Yield: ("yield", "a list that the function returns"),
    ast.YieldFrom: ("yield", "a list that the function returns"),
    ast.Starred: ("* in this place", "the items one by one"),
    ast.FunctionDef: ("a function in a function", "a function of the module"),
    ast.AsyncFunctionDef: ("async", "a function without async"),
    ast.ClassDef: ("a class in a function", "a class of the module"),
    ast.Delete: ("del", "a new list or tensor without the item"),
    ast.With: ("with", "the with statement around the call of the scripted function"),
    ast.AsyncWith: ("with", "the with statement around the call of the scripted function"),
    ast.AsyncFor: ("async", "a function without async"),
    ast.Try: ("try", "a test with if before the statement that may fail"),
    ast.Import: ("an import in a function", "the import at the top of the module"),
    ast.ImportFrom: ("an import in a function", "the import at the top of the module"),
    ast.Global: ("global", "an argument and a result"),
    ast.Nonlocal: ("nonlocal", "an argument and a result"),
    ast.Match: ("match", "if and elif"),
}


def scripts(*nodes: type[ast.AST]) -> Callable[[Handler], Handler]:
    """Register the function that scripts such expressions or statements."""

    def register(handler: Handler) -> Handler:
        for node in nodes:
            table: dict[type[ast.AST], Any] = (
                EXPRESSIONS if issubclass(node, ast.expr) else STATEMENTS
            )
            table[node] = handler
        return handler

    return register


def refuse(frame: Frame, node: ast.AST) -> None:
    """Raise the error for a construct that cannot be scripted."""
    unnamed = (type(node).__name__.lower(), "what the docstring of script() lists")
    name, remedy = _NAMES.get(type(node), unnamed)
    frame.fail(node, f"{name} cannot be scripted", remedy)


def expression(frame: Frame, node: ast.expr) -> Value:
    """What an expression is."""
    handler = EXPRESSIONS.get(type(node))
    if handler is None:
        refuse(frame, node)
        raise AssertionError
    return handler(frame, node)


def list_items(frame: Frame, node: ast.expr) -> Value:
    """What an expression is; of a list that is written out its items, for a type to be chosen."""
    if isinstance(node, ast.List) and not any(isinstance(each, ast.Starred) for each in node.elts):
        return Items(tuple(list_items(frame, each) for each in node.elts), is_list=True)
    return expression(frame, node)


def statement(frame: Frame, node: ast.stmt) -> None:
    """Script one statement, except those that decide which others run."""
    handler = STATEMENTS.get(type(node))
    if handler is None:
        refuse(frame, node)
        raise AssertionError
    handler(frame, node)
