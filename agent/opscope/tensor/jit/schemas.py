"""Schemas of operators: the types of their parameters and results, as graphs write them."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from opscope._tensor import operators

DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool", "bfloat16", "float16")
"""Names of dtypes by their numbers (enum opscope_dtype), which operators get as arguments."""


class Parameter(NamedTuple):
    name: str
    type: str
    """In the schema's notation, without the `?` of an optional: "int[]"."""
    is_optional: bool
    is_keyword: bool
    """Whether a call has to name it."""
    default: str | None
    """As the schema writes it."""
    length: int
    """N of int[N], which also accepts one int and repeats it N times; 0 for other types."""

    @property
    def is_list(self) -> bool:
        """Whether it takes a list."""
        return self.type.endswith("[]")


class Schema(NamedTuple):
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    """Names of the results; "" for one without a name."""
    is_list: bool
    """Whether it returns any number of tensors: one value, a List[Tensor]."""


_SIGNATURE = re.compile(r"\s*[\w.]+\((?P<parameters>.*)\)\s*->\s*(?P<results>.*)", re.DOTALL)
_PARAMETER = re.compile(
    r"(?P<type>[\w|]+(\[(?P<length>\d*)\])?)(?P<optional>\?)?\s+(?P<name>\w+)"
    r"(=(?P<default>\[[^\]]*\]|'[^']*'|[^,\s]+))?"
)


@functools.cache
def schema_of(operator: str) -> Schema:
    """The schema of "core::add". KeyError for an unknown operator."""
    return _parse(operators[operator].schema)


def _parse(text: str) -> Schema:
    found = _SIGNATURE.fullmatch(text)
    assert found is not None, text
    star = found["parameters"].find("*")
    parameters = tuple(
        Parameter(
            each["name"],
            re.sub(r"\[\d+\]", "[]", each["type"]),
            bool(each["optional"]),
            0 <= star < each.start(),
            each["default"],
            int(each["length"] or 0),
        )
        for each in _PARAMETER.finditer(found["parameters"])
    )
    results = found["results"].strip()
    names = tuple(
        (*each.split(), "")[1] for each in results.removeprefix("(").removesuffix(")").split(",")
    )
    return Schema(parameters, names, results == "Tensor[]")
