"""Script `x.name` of tensors, modules and other Python objects."""

from __future__ import annotations

import ast
import inspect

from opscope._tensor import Tensor
from opscope.tensor.composed import Later
from opscope.tensor.jit.scripting.dispatch import expression, scripts
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.functions import call_function
from opscope.tensor.jit.scripting.types import DTYPE, INT, STR, TENSOR, FutureOf, ListOf, plain
from opscope.tensor.jit.scripting.values import (
    AttributeTensor,
    Constant,
    FunctionValue,
    Items,
    Method,
    ModuleValue,
    Object,
    SuperValue,
    Value,
    describe,
    type_of,
)
from opscope.tensor.nn import Module

_KINDS = {
    "shape": ("py::size", ListOf(INT)),
    "ndim": ("py::dim", INT),
    "dtype": ("py::dtype", DTYPE),
}
_LIST_ATTRIBUTES = (
    "append",
    "clear",
    "copy",
    "count",
    "extend",
    "index",
    "insert",
    "pop",
    "reverse",
)


@scripts(ast.Attribute)
def _attribute(frame: Frame, node: ast.Attribute) -> Value:
    return get_attribute(frame, expression(frame, node.value), node.attr, node)


def get_attribute(frame: Frame, owner: Value, name: str, at: ast.AST) -> Value:
    """owner.name"""
    type_ = type_of(owner)
    type_ = type_ and plain(type_)
    if type_ == TENSOR:
        return _of_tensor(frame, owner, name, at)
    if isinstance(owner, (ModuleValue, Object)):
        return _of_object(frame, owner, name, at)
    if isinstance(owner, SuperValue):
        return _of_super(frame, owner, name, at)
    if isinstance(owner, Items) and name in owner.names:
        return owner.items[owner.names.index(name)]
    if (isinstance(type_, ListOf) or isinstance(owner, Items)) and name in _LIST_ATTRIBUTES:
        return Method(owner, name)
    if type_ == STR or (isinstance(type_, FutureOf) and name == "wait"):
        return Method(owner, name)
    if type_ == DTYPE and isinstance(owner, Constant):
        return frame.context.value_of(getattr(owner.value, name))
    remedy = "an attribute that it has, or a variable beside it"
    if type_ is not None and str(type_).startswith("Optional["):
        remedy = "a test before it that excludes None: assert x is not None"
    frame.fail(at, f"{describe(owner)} has no attribute {name}", remedy)


def _of_tensor(frame: Frame, owner: Value, name: str, at: ast.AST) -> Value:
    if name in _KINDS:
        kind, type_ = _KINDS[name]
        return frame.emit_one(kind, [frame.graph_value(owner, at)], type_, at)
    if name == "device":
        return Constant("cpu")
    found = inspect.getattr_static(Tensor, name, None)
    if isinstance(found, property) and found.fget is not None and name in ("T", "mT"):
        return call_function(frame, FunctionValue(found.fget), [owner], {}, at)
    if found is None:
        frame.fail(at, f"a Tensor has no attribute {name}", "one of Tensor's attributes")
    if not (callable(found) or isinstance(found, Later)) or isinstance(found, property):
        frame.fail(at, f"{name} of a Tensor is not in graphs", "an argument of the function")
    return Method(owner, name)


def _of_object(frame: Frame, owner: ModuleValue | Object, name: str, at: ast.AST) -> Value:
    python = owner.module if isinstance(owner, ModuleValue) else owner.object
    static = inspect.getattr_static(python, name, None)
    if isinstance(owner, ModuleValue) and isinstance(static, property) and static.fget:
        return call_function(frame, FunctionValue(static.fget, owner), [], {}, at)
    try:
        found = getattr(python, name)
    except AttributeError:
        frame.fail(at, f"{describe(owner)} has no attribute {name}", "an attribute that it has")
    if isinstance(owner, ModuleValue) and isinstance(found, Tensor):
        path = f"{owner.path}.{name}" if owner.path else name
        known = frame.context.attributes.get(path)
        return AttributeTensor(found, path if known is found else frame.context.tensor_name(found))
    if inspect.ismethod(found) and found.__self__ is python:
        return FunctionValue(found.__func__, owner)
    return frame.context.value_of(found)


def _of_super(frame: Frame, owner: SuperValue, name: str, at: ast.AST) -> Value:
    bound_to = owner.bound_to
    if isinstance(bound_to, ModuleValue):
        classes = type(bound_to.module).__mro__
        for each in classes[classes.index(owner.owner) + 1 :]:
            if name in vars(each) and each is not Module:
                return FunctionValue(vars(each)[name], bound_to)
    frame.fail(at, f"super() has no method {name}", "a method of a base class")
