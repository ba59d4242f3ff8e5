"""The parameters of a Python function: their names, types and defaults."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, TypeAlias

from opscope.tensor.jit.scripting.annotations import annotated_type
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.types import ANY, TENSOR, OptionalOf, Type
from opscope.tensor.jit.scripting.values import Value

Passed: TypeAlias = dict[str, Type | Value]
"""What a function is scripted for: by parameter the type of an input, or what is known. Those of
`*rest` are "rest.0" and so on."""


@dataclass(frozen=True)
class Parameter:
    """One parameter."""

    name: str
    type: Type
    is_annotated: bool
    """Those without an annotation are tensors, or objects that are known while scripting."""
    has_default: bool
    is_keyword_only: bool


@dataclass(frozen=True)
class Signature:
    """The parameters of a function, without the one that a method is bound to."""

    parameters: tuple[Parameter, ...]
    first: str
    """The name of what a method is bound to."""
    rest: str
    """The name of `*rest`, or ""."""

    @property
    def positional(self) -> list[Parameter]:
        """Those that a call may give by position."""
        return [each for each in self.parameters if not each.is_keyword_only]


def read_signature(frame: Frame, is_bound: bool) -> Signature:
    """The parameters that the function's definition has."""
    arguments = frame.source.tree.args
    if arguments.kwarg is not None:
        frame.fail(arguments.kwarg, "** in a signature cannot be scripted", "named parameters")
    positional = [*arguments.posonlyargs, *arguments.args]
    first_default = len(positional) - len(arguments.defaults)
    found = [
        _parameter(frame, each, place >= first_default, False)
        for place, each in enumerate(positional)
        if place > 0 or not is_bound
    ]
    found += [
        _parameter(frame, each, default is not None, True)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    nodes = {each.arg: each for each in [*positional, *arguments.kwonlyargs]}
    for parameter in found:
        _check_default(frame, parameter, nodes[parameter.name])
    return Signature(
        tuple(found),
        positional[0].arg if is_bound else "",
        arguments.vararg.arg if arguments.vararg is not None else "",
    )


def _parameter(
    frame: Frame, argument: ast.arg, has_default: bool, is_keyword_only: bool
) -> Parameter:
    annotation = argument.annotation
    type_ = TENSOR if annotation is None else annotated_type(frame, annotation)
    return Parameter(argument.arg, type_, annotation is not None, has_default, is_keyword_only)


def _check_default(frame: Frame, parameter: Parameter, at: ast.AST) -> None:
    """Refuse a default of another type than the parameter has."""
    if not parameter.has_default or parameter.type == ANY:
        return
    default = default_object(frame, parameter)
    name = parameter.name
    if default is None and not isinstance(parameter.type, OptionalOf):
        frame.fail(
            at,
            f"{name} is a {parameter.type}, and its default is None",
            f"{name}: {parameter.type} | None = None",
        )
    if not parameter.is_annotated and isinstance(default, (bool, int, float, str)):
        kind = type(default).__name__
        frame.fail(
            at,
            f"{name} has no annotation, so it is a Tensor, but its default is of type {kind}",
            f"{name}: {kind} = {default!r}",
        )


def default_object(frame: Frame, parameter: Parameter) -> Any:
    """A parameter's default, which Python evaluated when it defined the function."""
    function: Any = frame.function
    if parameter.is_keyword_only:
        return function.__kwdefaults__[parameter.name]
    arguments = frame.source.tree.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    return function.__defaults__[names.index(parameter.name) - len(names)]


def default_value(frame: Frame, parameter: Parameter) -> Value:
    """The default as a value."""
    return frame.context.value_of(default_object(frame, parameter))
