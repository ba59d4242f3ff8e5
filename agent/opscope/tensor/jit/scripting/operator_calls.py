"""Script calls of the core's operators. Arguments bind to the schema as in eager calls."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import opscope._tensor as core
from opscope.tensor.jit.schemas import Parameter, Schema, schema_of
from opscope.tensor.jit.scripting.convert import convert
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue
from opscope.tensor.jit.scripting.numbers import is_number
from opscope.tensor.jit.scripting.types import (
    BOOL,
    DTYPE,
    FLOAT,
    INT,
    STR,
    TENSOR,
    ListOf,
    OptionalOf,
    Type,
    optional,
    plain,
)
from opscope.tensor.jit.scripting.values import Constant, Items, Value, describe, type_of

_TYPES = {"int": INT, "float": FLOAT, "bool": BOOL, "dtype": DTYPE, "str": STR, "Tensor": TENSOR}
_OF_FACTORIES = {"device": ("cpu", None), "requires_grad": (False,)}
"""Keywords of operators that create tensors, with the values that change nothing."""


def call_operator(
    frame: Frame,
    name: str,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    at: ast.AST,
) -> Value:
    """A call of the operator of that full name."""
    schema = schema_of(name)
    given = _bind(frame, name, schema, arguments, keywords, at)
    last = max((place for place, value in enumerate(given) if value is not None), default=-1)
    inputs = []
    for parameter, value in zip(schema.parameters[: last + 1], given[: last + 1], strict=True):
        used = _default(parameter) if value is None else value
        inputs.append(_argument(frame, name, parameter, used, at))
    for parameter in schema.parameters[last + 1 :]:
        if parameter.default is None:
            frame.fail(
                at, f"{name}: the argument {parameter.name} is missing", f"{parameter.name}=..."
            )
    if schema.is_list:
        return frame.emit_one(name, inputs, ListOf(TENSOR), at)
    made = frame.emit(name, inputs, [TENSOR] * len(schema.results), at)
    return made[0] if len(made) == 1 else Items(tuple(made), schema.results)


def _bind(
    frame: Frame,
    name: str,
    schema: Schema,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    at: ast.AST,
) -> list[Value | None]:
    """The value of each parameter, None for those that are not given."""
    parameters = schema.parameters
    positional = [each for each in parameters if not each.is_keyword]
    given: list[Value | None] = [None] * len(parameters)
    for place, value in enumerate(arguments):
        if _is_spread(positional, place, arguments):
            given[place] = Items(tuple(arguments[place:]))
            break
        if place >= len(positional):
            frame.fail(
                at,
                f"{name} takes {len(positional)} positional arguments, and {len(arguments)} are "
                "given",
                f"{name.partition('::')[2]}({', '.join(each.name for each in positional)})",
            )
        given[place] = value
    names = [each.name for each in parameters]
    for keyword, value in keywords.items():
        if keyword in names:
            if given[names.index(keyword)] is not None:
                frame.fail(at, f"{name} gets the argument {keyword} twice", "it once")
            given[names.index(keyword)] = value
        elif keyword == "out" and isinstance(value, Constant) and value.value is None:
            continue
        elif keyword in _OF_FACTORIES and "dtype" in names:
            if not isinstance(value, Constant) or value.value not in _OF_FACTORIES[keyword]:
                frame.fail(at, f"{keyword}= cannot be scripted", "the call without it")
        else:
            frame.fail(
                at, f"{name} has no parameter {keyword} in graphs", f"one of {', '.join(names)}"
            )
    return given


def _is_spread(positional: list[Parameter], place: int, arguments: Sequence[Value]) -> bool:
    """Whether the arguments from there on are one list of ints, as in x.view(2, 3)."""
    if place + 1 != len(positional) or positional[place].type != "int[]":
        return False
    rest = arguments[place:]
    if any(type_of(each) not in (INT, TENSOR) for each in rest):
        return False
    return len(rest) > 1 or positional[place].length == 0


def _default(parameter: Parameter) -> Value:
    assert parameter.default is not None
    if parameter.type == "dtype" and parameter.default != "None":
        return Constant(getattr(core, parameter.default))
    value = ast.literal_eval(parameter.default)
    if isinstance(value, (list, tuple)):
        return Items(tuple(map(Constant, value)))
    assert value is None or isinstance(value, (bool, int, float, str))
    return Constant(value)


def _argument(
    frame: Frame, name: str, parameter: Parameter, value: Value, at: ast.AST
) -> GraphValue:
    found = _converted(frame, name, parameter, value, at)
    if found is None:
        part = parameter.type.partition("|")[0].removesuffix("[]")
        wanted = f"list of {part}" if parameter.is_list else part
        wanted += " or None" if parameter.is_optional else ""
        have = describe(value)
        remedy = f"an argument of type {wanted}"
        if have.startswith("Optional["):
            remedy = "a test before it that excludes None: assert x is not None"
        frame.fail(at, f"{name}: {parameter.name} is to be a {wanted}, not {have}", remedy)
    return found


def _converted(
    frame: Frame, name: str, parameter: Parameter, value: Value, at: ast.AST
) -> GraphValue | None:
    type_ = type_of(value)
    type_ = type_ and plain(type_)
    if isinstance(value, Constant) and value.value is None:
        return frame.graph_value(value, at) if parameter.is_optional else None
    if parameter.is_list:
        return _list(frame, parameter, value, at)
    if parameter.type == "Scalar":
        if isinstance(type_, OptionalOf) and parameter.is_optional:
            return frame.graph_value(value, at)
        if type_ == TENSOR:
            return frame.emit_one("py::float", [frame.graph_value(value, at)], FLOAT, at)
        return frame.graph_value(value, at) if is_number(value) else None
    if parameter.type == "Tensor" and core.operators[name].takes_numbers and is_number(value):
        return frame.graph_value(value, at)
    wanted: Type = _TYPES[parameter.type.partition("|")[0]]
    if type_ == TENSOR and wanted in (INT, FLOAT, BOOL):
        return frame.emit_one(f"py::{wanted}", [frame.graph_value(value, at)], wanted, at)
    return convert(frame, value, optional(wanted) if parameter.is_optional else wanted, at)


def _list(frame: Frame, parameter: Parameter, value: Value, at: ast.AST) -> GraphValue | None:
    """An argument of a list type. An int becomes a list of it, but stays an int for "int|int[]"."""
    type_ = type_of(value)
    if parameter.type == "int|int[]" and type_ == INT:
        return frame.graph_value(value, at)
    if parameter.type != "Tensor[]" and type_ in (INT, TENSOR):
        number = value
        if type_ == TENSOR:
            number = frame.emit_one("py::int", [frame.graph_value(value, at)], INT, at)
        value = Items((number,) * (parameter.length or 1))
    wanted = ListOf(TENSOR if parameter.type == "Tensor[]" else INT)
    return convert(frame, value, optional(wanted) if parameter.is_optional else wanted, at)
