"""Write the types of the operators, for type checkers, from the table of the core.

Run with opscope installed: generate_stubs.py > agent/opscope/tensor/_operators.pyi. The functions
of opscope/tensor/forms.py, which stand before operators of their names, have types of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from opscope import tensor as ot
from opscope.tensor import composed, forms

HEAD = '''"""The types of opscope.tensor's operators: as functions, and as methods of Tensor.

Written by native/tensor/python/generate_stubs.py from the core's table; do not edit.
"""

# ruff: noqa: N805 - a parameter that is not the first may be called self

import builtins
from collections.abc import Sequence
from typing import NamedTuple, SupportsFloat, SupportsIndex, TypeAlias, overload

from typing_extensions import Self

from opscope._tensor import Tensor
from opscope._tensor import dtype as _dtype
from opscope.tensor.places import device as _device

# Of Python and of NumPy.
Int: TypeAlias = SupportsIndex
Ints: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
Number: TypeAlias = SupportsFloat | SupportsIndex
Device: TypeAlias = builtins.str | _device

'''
WIDTH = 100
TYPES = {
    "Tensor[]": "Sequence[Tensor]",
    "int": "Int",
    "int[]": "Ints",
    "int|int[]": "Ints",
    "float": "Number",
    "bool": "builtins.bool",
    "Scalar": "Number",
    "dtype": "_dtype",
    "str": "builtins.str",
}
PARAMETER = re.compile(
    r"(?P<type>[\w|]+(\[\d*\])?(\|int\[\])?)(?P<optional>\?)? (?P<name>\w+)(=(?P<default>.+))?"
)


@dataclass(frozen=True)
class Parameter:
    """One parameter: its type as a type checker reads it."""

    name: str
    type: str
    default: str | None
    is_sizes: bool

    def text(self, name: str = "") -> str:
        """As it stands in a signature."""
        default = f" = {self.default}" if self.default is not None else ""
        return f"{name or self.name}: {self.type}{default}"


def split_list(text: str) -> list[str]:
    """The pieces between commas that are not within brackets."""
    return [piece.strip() for piece in re.split(r",(?![^\[]*\])", text) if piece.strip()]


def parse(operator: ot.Operator) -> tuple[list[Parameter], list[Parameter], list[str]]:
    """Positional parameters, those by name only, and the outputs ("" without a name)."""
    inside, _, outputs = operator.schema.partition("->")
    positional: list[Parameter] = []
    named: list[Parameter] = []
    into = positional
    for piece in split_list(inside[inside.index("(") + 1 : inside.rindex(")")]):
        if piece == "*":
            into = named
            continue
        found = PARAMETER.fullmatch(piece)
        assert found, piece
        kind = re.sub(r"\[\d+\]", "[]", found["type"])
        is_tensor = kind == "Tensor"
        tensor = "Tensor | Number" if operator.takes_numbers else "Tensor"
        type_ = tensor if is_tensor else TYPES[kind]
        if found["optional"]:
            type_ += " | None"
        default = None if found["default"] is None else "..."
        into.append(Parameter(found["name"], type_, default, found["type"] == "int[]"))
    outputs = outputs.strip()
    if outputs.startswith("("):
        return positional, named, [piece.split()[1] for piece in split_list(outputs[1:-1])]
    return positional, named, [outputs]


def definition(name: str, parameters: list[str], result: str, indent: str) -> list[str]:
    """A def as ruff formats it."""
    whole = f"{indent}def {name}({', '.join(parameters)}) -> {result}: ..."
    if len(whole) <= WIDTH:
        return [whole]
    inside = f"{indent}    {', '.join(parameters)}"
    lines = [inside] if len(inside) <= WIDTH else [f"{indent}    {each}," for each in parameters]
    return [f"{indent}def {name}(", *lines, f"{indent}) -> {result}: ..."]


def signatures(operator: ot.Operator, name: str, is_method: bool) -> list[list[str]]:
    """The lines of a def for each way to call it."""
    indent = "    " if is_method else ""
    positional, named, outputs = parse(operator)
    is_in_place = name.endswith("_")
    result = "Tensor"
    out = "Tensor | None"
    if outputs == ["Tensor[]"]:
        result = "tuple[Tensor, ...]"
    elif len(outputs) > 1:
        result = f"{name}_result"
        out = f"tuple[{', '.join(['Tensor'] * len(outputs))}] | None"
    first = [parameter.text() for parameter in positional]
    if is_method:
        has_self = any(parameter.name == "self" for parameter in positional[1:])
        first[0] = positional[0].name if has_self else "self"
        result = "Self" if is_in_place else result
    elif is_in_place:
        first[0] = f"{positional[0].name}: Tensor"
    by_name = [parameter.text() for parameter in named]
    if by_name and "_dtype" in named[-1].type and operator.node_name is None:
        by_name += ["device: Device | None = ...", "requires_grad: builtins.bool = ..."]
    if not is_in_place and not operator.is_view and outputs != ["Tensor[]"]:
        by_name.append(f"out: {out} = ...")
    star = ["*", *by_name] if by_name else []
    ways = [definition(name, [*first, *star], result, indent)]
    last = positional[-1] if positional else None
    if last and last.is_sizes and (len(positional) > 1 or not is_method):
        spread = [*first[:-1], f"*{last.name}: Int", *by_name]
        ways.append(definition(name, spread, result, indent))
    return ways


def lines_of(operator: ot.Operator, name: str, is_method: bool) -> list[str]:
    """Its definition, overloaded where there are several ways."""
    ways = signatures(operator, name, is_method)
    indent = "    " if is_method else ""
    lines = []
    for way in ways:
        if len(ways) > 1:
            lines.append(f"{indent}@overload")
        lines += way
    return lines


def generate() -> str:
    """The text of the stub."""
    operators = {
        name.partition("::")[2]: operator
        for name, operator in sorted(ot.operators.items())
        if name.startswith("core::")
    }
    results, functions, methods = [], [], []
    for name, operator in operators.items():
        positional, _, outputs = parse(operator)
        if len(outputs) > 1:
            fields = [f"    {output}: Tensor" for output in outputs]
            comment = "# noqa: N801 - its name at run time"
            results += [f"class {name}_result(NamedTuple):  {comment}", *fields, ""]
        if name not in forms.FUNCTIONS and name not in composed.FUNCTIONS:
            functions += lines_of(operator, name, False)
        is_method = positional and positional[0].type in ("Tensor", "Tensor | Number")
        if is_method and name not in forms.METHODS:
            methods += lines_of(operator, name, True)
    body = ["class OperatorMethods:", *methods, ""]
    return HEAD + "\n".join([*results, *functions, "", *body])


if __name__ == "__main__":
    print(generate(), end="")
