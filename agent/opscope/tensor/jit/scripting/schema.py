"""The schemas of operators, read for binding calls to them."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass

from opscope._tensor import operators

_PARAMETER = re.compile(
    r"(?P<type>Tensor|int\|int|int|float|bool|Scalar|dtype|str)(?P<list>\[(?P<length>\d*)\])?"
    r"(?P<optional>\?)? (?P<name>\w+)(=(?P<default>.+))?"
)


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operator."""

    name: str
    type: str
    """Without the brackets of a list and "?"."""
    is_list: bool
    length: int
    """Of int[N]: a single int is repeated so often."""
    is_optional: bool
    is_keyword_only: bool
    default: str | None

    @property
    def default_value(self) -> object:
        """The default as a Python object; of a dtype, its name."""
        assert self.default is not None
        return (
            self.default
            if self.type == "dtype" and self.default != "None"
            else ast.literal_eval(self.default)
        )


@dataclass(frozen=True)
class Schema:
    """An operator's parameters and outputs."""

    parameters: tuple[Parameter, ...]
    outputs: tuple[str, ...]
    """Their names, "" for one without."""
    returns_list: bool
    takes_numbers: bool


def _pieces(text: str) -> list[str]:
    """The parts between commas that are not within brackets or quotes."""
    return [each.strip() for each in re.split(r",(?![^\[]*\])", text) if each.strip()]


@functools.cache
def schema_of(name: str) -> Schema:
    """The schema of the operator of that full name."""
    operator = operators[name]
    inside, _, outputs = operator.schema.partition("->")
    parameters = []
    keyword_only = False
    for piece in _pieces(inside[inside.index("(") + 1 : inside.rindex(")")]):
        if piece == "*":
            keyword_only = True
            continue
        found = _PARAMETER.fullmatch(piece)
        assert found, piece
        parameters.append(
            Parameter(
                found["name"],
                found["type"],
                found["list"] is not None,
                int(found["length"] or 0),
                found["optional"] is not None,
                keyword_only,
                found["default"],
            )
        )
    outputs = outputs.strip()
    names: tuple[str, ...] = ("",)
    if outputs.startswith("("):
        names = tuple(each.split()[1] for each in _pieces(outputs[1:-1]))
    return Schema(tuple(parameters), names, outputs == "Tensor[]", operator.takes_numbers)
