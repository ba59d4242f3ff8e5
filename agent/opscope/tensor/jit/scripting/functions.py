"""Script one Python function: its parameters, its body, its result."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opscope.errors import ScriptError
from opscope.tensor.jit.scripting import source as sources
from opscope.tensor.jit.scripting.context import Compiled, Context
from opscope.tensor.jit.scripting.convert import convert, need
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import GraphValue, to_text
from opscope.tensor.jit.scripting.parameters import (
    Parameter,
    Passed,
    Signature,
    default_value,
    read_signature,
)
from opscope.tensor.jit.scripting.returns import give_back
from opscope.tensor.jit.scripting.sequence import clear_flags, result_type, run_steps
from opscope.tensor.jit.scripting.types import (
    ANY,
    TENSOR,
    FutureOf,
    ListOf,
    TupleOf,
    Type,
    Unknown,
)
from opscope.tensor.jit.scripting.values import (
    Constant,
    FunctionValue,
    Items,
    ModuleValue,
    Object,
    Value,
    type_of,
)
from opscope.tensor.jit.scripting.variables import RESULT, Bound


def new_frame(context: Context, function: FunctionValue) -> Frame:
    """A frame for scripting that function."""
    source = sources.read(function.function)
    bound_to = function.bound_to
    scope = bound_to.path if isinstance(bound_to, ModuleValue) else ""
    frame = Frame(context, function.function, source, scope, _owner(function))
    clear_flags(frame)
    frame.variables[RESULT] = Bound(Constant(None), 0)
    return frame


def _owner(function: FunctionValue) -> type | None:
    """The class whose method it is."""
    if not isinstance(function.bound_to, ModuleValue):
        return None
    classes = type(function.bound_to.module).__mro__
    return next((each for each in classes if function.function in vars(each).values()), None)


def identity(value: Value | None) -> object:
    """What distinguishes objects that are known while scripting."""
    if isinstance(value, ModuleValue):
        return id(value.module)
    if isinstance(value, FunctionValue):
        return value.function, identity(value.bound_to)
    if isinstance(value, Object):
        return id(value.object)
    if isinstance(value, Constant):
        return type(value.value).__name__, repr(value.value)
    return id(value)


def compile_function(
    frame: Frame, function: FunctionValue, signature: Signature, passed: Passed, name: str = ""
) -> Compiled:
    """Script a function for arguments of these types; `frame` is new, and the function's."""
    context = frame.context
    who = (function.function, identity(function.bound_to))
    types = tuple(
        str(each) if isinstance(each, Type) else identity(each) for each in passed.values()
    )
    if (*who, types) in context.functions:
        return context.functions[(*who, types)]
    chosen = name or context.function_name(function.function, function.bound_to)
    context.calls.append((who, sources.name_of(function.function)))
    names = _take(frame, function, signature, passed)
    body = frame.source.tree.body
    run_steps(frame, [*body, lambda: give_back(frame, Constant(None), body[-1])])
    output = _output(frame, body[-1])
    frame.body.outputs.append(output)
    context.calls.pop()
    context.keep_code(frame.source)
    compiled = Compiled(chosen, output.type, to_text(frame.body, names))
    context.functions[(*who, types)] = compiled
    return compiled


def _take(frame: Frame, function: FunctionValue, signature: Signature, passed: Passed) -> list[str]:
    """Give the parameters their values; the names of the graph's inputs."""
    if function.bound_to is not None:
        frame.variables[signature.first] = Bound(function.bound_to, 0)
    names = []
    values: dict[str, Value] = {}
    for name, each in passed.items():
        if isinstance(each, Type):
            names.append(name)
            taken = frame.body.take(each)
            values[name] = frame.receive(taken, frame.source.tree)
        else:
            values[name] = each
    line = frame.source.line(frame.source.tree)
    for parameter in signature.parameters:
        type_ = passed[parameter.name]
        declared = type_ if isinstance(type_, Type) and parameter.is_annotated else None
        frame.variables[parameter.name] = Bound(values[parameter.name], line, declared)
    if signature.rest:
        rest = [value for name, value in values.items() if name.startswith(f"{signature.rest}.")]
        frame.variables[signature.rest] = Bound(Items(tuple(rest)), line)
    return names


def _output(frame: Frame, at: ast.AST) -> GraphValue:
    type_ = _resolved(result_type(frame))
    if frame.is_dead:
        return frame.never(type_, at)
    variable = frame.variables[RESULT]
    assert isinstance(variable, Bound)
    output = convert(frame, variable.value, type_, at)
    assert output is not None
    return output


def _resolved(type_: Type) -> Type:
    """A type without unknown parts: an empty list that nothing used is one of tensors."""
    if isinstance(type_, ListOf) and isinstance(type_.part, Unknown):
        type_.part.found = TENSOR
    if isinstance(type_, TupleOf):
        for part in type_.parts:
            _resolved(part)
    return type_


@contextmanager
def _called(frame: Frame, at: ast.AST) -> Iterator[None]:
    """Lets errors of a called function say where it is called."""
    try:
        yield
    except ScriptError as error:
        error.add_caller(frame.source.file, frame.source.line(at))
        raise


def call_function(
    frame: Frame,
    function: FunctionValue,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    at: ast.AST,
    is_task: bool = False,
) -> Value:
    """A call of a Python function: prim::CallFunction, or prim::Fork of a task."""
    context = frame.context
    who = (function.function, identity(function.bound_to))
    chain = [name for each, name in context.calls if each == who]
    if chain:
        start = [each for each, _ in context.calls].index(who)
        names = [name for _, name in context.calls[start:]] + chain
        frame.fail(
            at, f"recursion cannot be scripted: {' calls '.join(names)}", "a loop, such as while"
        )
    with _called(frame, at):
        callee = new_frame(context, function)
        signature = read_signature(callee, function.bound_to is not None)
    given = _bind(frame, callee, signature, arguments, keywords, at)
    passed: Passed = {}
    inputs = []
    name = sources.name_of(function.function)
    for parameter in signature.parameters:
        value, wanted = given[parameter.name], parameter.type
        found = type_of(value)
        is_known = found is None or (wanted == ANY and isinstance(value, Constant))
        if is_known and (wanted == ANY or not parameter.is_annotated):
            passed[parameter.name] = value
            continue
        what = f"the argument {parameter.name} of {name}"
        if found is not None and wanted == ANY:
            wanted = found
        if not parameter.is_annotated and found not in (TENSOR, None):
            frame.fail(
                at,
                f"{parameter.name} of {name} has no annotation, so it is a Tensor, not {found}",
                f"def {name}(..., {parameter.name}: {found})",
            )
        made = need(frame, value, wanted, _argument_of(at, signature, parameter), what)
        passed[parameter.name] = wanted
        inputs.append(made)
    for place, value in enumerate(arguments[len(signature.positional) :]):
        made = frame.graph_value(value, at)
        passed[f"{signature.rest}.{place}"] = made.type
        inputs.append(made)
    with _called(frame, at):
        compiled = compile_function(callee, function, signature, passed)
    attributes = f'[name="{compiled.name}"]'
    if is_task:
        return frame.emit_one("prim::Fork", inputs, FutureOf(compiled.result), at, attributes)
    result = frame.emit_one("prim::CallFunction", inputs, compiled.result, at, attributes)
    return frame.receive(result, at)


def _argument_of(call: ast.AST, signature: Signature, parameter: Parameter) -> ast.AST:
    """Where the call gives that parameter; the call itself if that is not known."""
    if not isinstance(call, ast.Call) or any(isinstance(each, ast.Starred) for each in call.args):
        return call
    for keyword in call.keywords:
        if keyword.arg == parameter.name:
            return keyword.value
    place = signature.parameters.index(parameter)
    return call.args[place] if place < len(call.args) else call


def _bind(
    frame: Frame,
    callee: Frame,
    signature: Signature,
    arguments: Sequence[Value],
    keywords: Mapping[str, Value],
    at: ast.AST,
) -> dict[str, Value]:
    """The value of each parameter."""
    name = sources.name_of(callee.function)
    remedy = f"a call that fits {name}({', '.join(each.name for each in signature.parameters)})"
    positional = signature.positional
    if len(arguments) > len(positional) and not signature.rest:
        frame.fail(
            at,
            f"{name} takes {len(positional)} positional arguments, not {len(arguments)}",
            remedy,
        )
    given = dict(zip((each.name for each in positional), arguments, strict=False))
    for keyword, value in keywords.items():
        if keyword in given:
            frame.fail(at, f"{name} gets the argument {keyword} twice", remedy)
        given[keyword] = value
    known = [each.name for each in signature.parameters]
    for keyword in given:
        if keyword not in known:
            frame.fail(at, f"{name} has no parameter {keyword}", remedy)
    for parameter in signature.parameters:
        if parameter.name not in given:
            if not parameter.has_default:
                frame.fail(at, f"{name}: the argument {parameter.name} is missing", remedy)
            given[parameter.name] = default_value(callee, parameter)
    return given
