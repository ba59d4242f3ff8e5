"""Read declarations and types from TorchScript's syntax trees."""

from __future__ import annotations

import ast

from opscope.tensor.jit.torchscript.archive import Instance, TorchScript
from opscope.tensor.jit.torchscript.values import Value, type_of


class RefusedError(Exception):
    """A construct that has no translation."""


def raises(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) == "ops.prim.RaiseException"
    )


def defaults(function: ast.FunctionDef) -> dict[int, ast.expr]:
    """By the parameters' numbers."""
    defaults = function.args.defaults
    return dict(enumerate(defaults, len(function.args.args) - len(defaults)))


def declared(program: TorchScript, instance: Instance, name: str) -> list[str]:
    """The names in a class's `__parameters__` or the like."""
    defined = program.classes.get(instance.class_name)
    for statement in defined.body if defined else ():
        match statement:
            case ast.Assign(targets=[ast.Name(id=found)], value=ast.List(elts=items)) if (
                found == name
            ):
                return [str(each.value) for each in items if isinstance(each, ast.Constant)]
    return []


def final(program: TorchScript, instance: Instance, name: str) -> ast.expr | None:
    """The value of a class's `name : Final[int] = 8`."""
    defined = program.classes.get(instance.class_name)
    for statement in defined.body if defined else ():
        match statement:
            case ast.AnnAssign(target=ast.Name(id=found), value=value) if found == name:
                return value
    return None


def annotation(node: ast.expr | None) -> str:
    """A declared type as a graph writes it."""
    match node:
        case ast.Name(id="Tensor" | "int" | "float" | "bool" | "str" as name):
            return name
        case ast.Name(id="NoneType"):
            return "None"
        case ast.Subscript(value=ast.Name(id="Optional" | "List" | "Tuple" as name), slice=part):
            parts = part.elts if isinstance(part, ast.Tuple) else [part]
            return f"{name}[{', '.join(map(annotation, parts))}]"
        case None:
            return "Tensor"
    raise RefusedError(f"the type {ast.unparse(node)}")


def common_type(one: Value, other: Value, name: str) -> str:
    """The type of a value that is one or the other."""
    types = [type_of(one), type_of(other)]
    if types[0] == types[1]:
        return types[0]
    parts = {_part(each) for each in types} - {"None"}
    if len(parts) == 1 and any(each == "None" or _part(each) != each for each in types):
        return f"Optional[{parts.pop()}]"
    raise RefusedError(f"{name} is {types[0]} in one branch and {types[1]} in the other")


def _part(kind: str) -> str:
    """What an optional has if it is not None."""
    return kind[len("Optional[") : -1] if kind.startswith("Optional[") else kind
